// Which process holds something that several processes share, and whether that process still lives.
//
// A process is named by the boot of its machine, its process namespace, its number and the moment it began. So neither a later process with
// the same number nor a process in another container with the same host name is taken for it. A process that cannot be seen from here (on another
// machine, in another container) must say now and then that it lives. After `lease_seconds` without a word the process counts as gone.
#pragma once
#include <string>

namespace loopegg {

constexpr double lease_seconds = 45, beat_seconds = 5;

// This process, as text without line breaks: "BOOT NAMESPACE PID START HOST".
const std::string& own_name();

// Whether the owner of that name lives, if the owner last said so `silent_seconds` ago. A name in another form belongs to nobody.
bool is_owner_alive(const std::string& name, double silent_seconds);

// "process 4711 on myhost", for people.
std::string owner_words(const std::string& name);

}  // namespace loopegg
