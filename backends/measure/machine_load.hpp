// Whether somebody else is using this machine, asked while our own processes rest.
#pragma once

namespace loopegg {

// Looks now and then. It calls the machine busy when something else ran at half the looks or more.
class MachineLoad {
public:
    void look();  // when nobody of ours should be running but the caller
    bool busy() const { return looks_ > 0 && 2 * seen_ >= looks_; }

private:
    int looks_ = 0, seen_ = 0;
};

}  // namespace loopegg
