#!/bin/sh
# Makes a folder with everything that a machine needs which is reached through a narrow pipe:   go.sh pack CIFAR_FOLDER OUT_FOLDER
# Runs there, on a GPU, and ends within so many seconds; results are in $OUT:                    go.sh [SECONDS [OPTION OF run.py...]]
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = pack ]; then
    set -e
    truth=$here/../../fisher/truth accuracy=$here/../accuracy
    mkdir -p "$3"
    [ -e "$3/cifar/part0.xz" ] || python3 "$truth/pack_cifar.py" pack "$2" "$3/cifar" 5 9
    cp "$here"/*.py "$here/go.sh" "$accuracy/networks.py" "$accuracy/train.py" "$accuracy/fit.py" "$truth/pack_cifar.py" "$3"
    du -sh "$3"
    exit
fi
start=$(date +%s) seconds=${1:-560} out=${OUT:-out}
[ $# -eq 0 ] || shift
export PYTHONUNBUFFERED=1
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
# Processes share the GPU instead of taking turns.
mps=$(command -v nvidia-cuda-mps-control) && "$mps" -d && echo "MPS is on"
timeout -k 5 $((seconds - 12)) python3 "$here/run.py" --data "$here/cifar" --out "$out/choices.jsonl" --until $((start + seconds - 24)) \
    --scratch "${SCRATCH:-/tmp/choices}" --weights "$out" "$@" > "$out/log.txt" 2>&1
grep -E "unpacked|original|failed|ended" "$out/log.txt" | head -n 30
tail -n 12 "$out/log.txt"
[ -z "$mps" ] || echo quit | timeout 5 "$mps" > /dev/null 2>&1
timeout 8 python3 "$here/judge.py" "$out/choices.jsonl" > "$out/judged.txt" 2>&1
head -n 60 "$out/judged.txt"
ls -l "$out"
