# Installs what tests and benchmarks hold loopegg against into .deps/peers, a virtual environment of its own (LOOPEGG_PEERS names another place).

install_peers() {
    local home=${LOOPEGG_PEERS:-$root/.deps/peers} log=$root/.deps/peers.log wanted
    wanted=$(cat "$1" | cksum)
    [ "$(cat "$home/installed" 2>/dev/null)" = "$wanted" ] && return 0
    say "installing the packages of ${1#"$root"/} into ${home#"$root"/}"
    [ -x "$home/bin/python3" ] || /usr/bin/python3 -m venv "$home" || stop "no virtual environment can be made (Debian package python3-venv)"
    "$home/bin/python3" -m pip install --disable-pip-version-check --progress-bar off --requirement "$1" >"$log" 2>&1 </dev/null &
    local pip=$!
    while kill -0 "$pip" 2>/dev/null; do
        show_progress "peers: $(grep -cE '^ *(Downloading|Using cached)' "$log" 2>/dev/null) packages fetched"
        sleep 1
    done
    end_progress
    wait "$pip" || { tail -n 4 "$log" | sed 's/^/  /' >&2; stop "pip could not install the packages of $1 (see $log); run this again once that is settled"; }
    printf '%s' "$wanted" >"$home/installed"
}
