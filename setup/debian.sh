# Installs the Debian packages of a list (debian.txt) that are missing, with apt, when that is allowed here.

missing_packages() {
    local package
    sed -e 's/^#.*//' -e '/\[/{/\['"$(uname -m)"'\]/!d}' "$root/setup/$1" | while read -r package _; do
        [ -z "$package" ] || dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

# apt reports '...status:package:percent:what it does' on the descriptor that it is given; sudo would close that
# descriptor, so it is opened inside.
apt_run() {
    $as_root sh -c 'exec env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 \
                    "$@" 3>&1 >>"$0" 2>&1 </dev/null' "$log" "$@" |
        while IFS=: read -r kind _ percent what; do
            case $kind in dlstatus | pmstatus) show_progress "Debian packages: ${percent%%.*}% ($what)" ;; esac
        done
    return "${PIPESTATUS[0]}"
}

# What an earlier, cut-off installation unpacked and never configured keeps apt from doing anything at all.
finish_interrupted() {
    grep -q 'dpkg was interrupted' "$log" || return 0
    say "finishing an installation that was cut off"
    $as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a --force-confold >>"$log" 2>&1 </dev/null || true
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --fix-broken --no-install-recommends install >>"$log" 2>&1 </dev/null || true
}

install_debian_packages() {
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        stop "this is not a Debian system (no apt-get); install what setup/debian.txt and setup/requirements.txt list, then use meson"
    local packages as_root='' log=$deps/apt.log
    packages=$(missing_packages "$1" | tr '\n' ' ')
    packages=${packages% }
    [ -n "$packages" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && [ -t 2 ]; }; } || stop "these Debian packages are missing, and only root can install them:
  $packages
install them with
  sudo apt-get install $packages
and run this again"
        as_root=sudo
    fi
    say "installing Debian packages: $packages"
    : >"$log"
    local ok=1
    # Fresh machines have no package lists, old ones have stale lists: ask for new lists only when it does not work without. A machine that
    # was switched off in the middle of an installation must first finish that one.
    apt_run install --no-install-recommends $packages ||
        { finish_interrupted; apt_run update && apt_run install --no-install-recommends $packages; } || ok=0
    end_progress
    if [ $ok = 0 ] || [ -n "$(missing_packages "$1")" ]; then
        tail -n 4 "$log" | sed 's/^/  /' >&2
        if grep -qE 'Could not resolve|Could not connect|Unable to connect|Network is unreachable|Failed to fetch' "$log"; then
            stop "cannot reach the Debian mirror, so $(missing_packages "$1" | tr '\n' ' ')could not be installed; with a network, run this again and it resumes from here"
        fi
        stop "apt could not install $(missing_packages "$1" | tr '\n' ' ')(see $log); run this again once that is settled"
    fi
}
