// Whether somebody else is using this machine, asked while our own processes rest.
#pragma once

namespace loopegg {

// Looks now and then. The machine counts as busy when something else ran at half of the looks or more.
class MachineLoad {
public:
    void look();  // call it when no process of ours but the caller should be running
    bool busy() const { return looks_ > 0 && 2 * seen_ >= looks_; }

private:
    int looks_ = 0, seen_ = 0;
};

}  // namespace loopegg
