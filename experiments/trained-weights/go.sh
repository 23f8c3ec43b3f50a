#!/bin/sh
# Makes a folder with everything that a machine needs which is reached through a narrow pipe:   go.sh pack CIFAR_FOLDER TORCH_PRUNING OUT_FOLDER
# Runs there, on a GPU, and ends within so many seconds; results are in $OUT:                    go.sh SECONDS [OPTION OF fine_tune.py...]
# TORCH_PRUNING is the package's folder (PyPI: torch-pruning).
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = pack ]; then
    set -e
    truth=$here/../../fisher/truth accuracy=$here/../accuracy choices=$here/../choices
    mkdir -p "$4"
    [ -e "$4/cifar/part0.xz" ] || python3 "$truth/pack_cifar.py" pack "$2" "$4/cifar" 5 9
    cp "$here"/*.py "$here/go.sh" "$here/networks.jsonl" "$choices/cells.py" "$choices/importance.py" "$choices/run.py" "$choices/slices.py" \
        "$accuracy/networks.py" "$accuracy/train.py" "$accuracy/torch_pruning_plan.py" "$truth/pack_cifar.py" "$4"
    cp -r "$3" "$4"
    du -sh "$4"
    exit
fi
start=$(date +%s) seconds=${1:-560} out=${OUT:-out}
[ $# -eq 0 ] || shift
export PYTHONUNBUFFERED=1
mkdir -p "$out"
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
# Processes share the GPU instead of switching between them.
mps=$(command -v nvidia-cuda-mps-control) && "$mps" -d && echo "MPS is on"
timeout -k 5 $((seconds - 8)) python3 "$here/fine_tune.py" --data "$here/cifar" --networks "$here/networks.jsonl" --out "$out/students.jsonl" \
    --until $((start + seconds - 15)) "$@" 2>&1 | tee "$out/log.txt" | grep -E "^[0-9]+ s:|Error"
[ -z "$mps" ] || echo quit | timeout 5 "$mps" > /dev/null 2>&1
ls -l "$out"
