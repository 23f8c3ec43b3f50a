# What set-up says, always on standard error, because standard output belongs to the command that runs after it.
say()  { printf 'loopegg: %s\n' "$*" >&2; }
stop() { printf 'loopegg: %s\n' "$*" >&2; exit 1; }

# A line that is overwritten on a terminal, and printed at most every ten seconds elsewhere.
last_shown=-10
show_progress() {
    if [ -t 2 ]; then printf '\rloopegg: %s\033[K' "$*" >&2
    elif [ $((SECONDS - last_shown)) -ge 10 ]; then last_shown=$SECONDS; say "$*"; fi
}
end_progress() { if [ -t 2 ]; then printf '\r\033[K' >&2; fi; }
