# Configures and builds with Debian's own tools, whatever compiler flags or other Pythons the caller's shell has.
clean_environment() {
    env -u CC -u CXX -u CPPFLAGS -u CXXFLAGS -u CFLAGS -u LDFLAGS -u CPATH -u LIBRARY_PATH -u LD_LIBRARY_PATH -u LD_PRELOAD \
        -u PKG_CONFIG_PATH -u PKG_CONFIG_LIBDIR -u PYTHONPATH -u PYTHONHOME PATH=/usr/bin:/bin:/usr/sbin:/sbin "$@"
}

# A folder that was configured for another place, or never to the end, is configured again.
configure() {
    [ -f "$build/build.ninja" ] && [ "$(cat "$build/.configured" 2>/dev/null)" = "$root" ] && return 0
    say "configuring $(basename "$build") ($build_type)"
    local log=$deps/configure.log wipe='' grouped=true
    [ "$build_type" = debug ] && grouped=false   # whoever debugs edits single files
    [ -d "$build/meson-private" ] && wipe=--wipe
    clean_environment meson setup $wipe --buildtype="$build_type" -Dgrouped=$grouped "$build" "$root" >"$log" 2>&1 ||
        { tail -n 3 "$log" | sed 's/^/  /' >&2; stop "Meson could not configure the build (see $log)"; }
    printf '%s' "$root" >"$build/.configured"
}

# As many compilers as there are cores, fewer where memory is short: the largest file takes about 1.5 GB.
jobs_here() {
    local cores memory
    cores=$(nproc)
    memory=$(awk '/MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
    [ "$memory" -lt 1 ] && memory=1
    echo $((cores < memory ? cores : memory))
}

compile() {
    local log=$deps/build.log
    # The usual case, nothing to do, says nothing.
    if clean_environment ninja -C "$build" -n "$@" 2>/dev/null | tail -n 1 | grep -q 'no work to do'; then return 0; fi
    [ "$(df -P --block-size=1M "$root" | awk 'NR == 2 { print $4 }')" -ge 600 ] || stop "too little disk: building needs 600 MB where $root is"
    say "building $(basename "$build")"
    local done_of
    clean_environment NINJA_STATUS='[%f/%t] ' ninja -C "$build" -j "$(jobs_here)" "$@" 2>&1 | tee "$log" |
        while IFS= read -r line; do
            done_of=${line#[}
            case $line in \[*/*) done_of=${done_of%%]*}; show_progress "building: ${done_of%/*} of ${done_of#*/}" ;; esac
        done
    local status=${PIPESTATUS[0]}
    end_progress
    if [ "$status" -ne 0 ]; then
        { grep -E ': (fatal )?error:|ERROR:|^ninja: error|undefined reference|Killed|No space left' "$log" || tail -n 10 "$log"; } | head -n 12 | sed 's/^/  /' >&2
        stop "the build failed (the whole of it is in $log)"
    fi
}

# What tests and benchmarks compare loopegg with, in .deps/peers, a separate virtual environment (LOOPEGG_PEERS names another place).
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
