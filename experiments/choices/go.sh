#!/bin/sh
# What runs on a machine with a GPU, in the folder that pack.sh made: go.sh [SECONDS [OPTION OF run.py...]]. Everything ends by itself in so many seconds; results are in $OUT.
start=$(date +%s) seconds=${1:-560} here=$(cd "$(dirname "$0")" && pwd) out=${OUT:-out}
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
