#!/bin/sh
# Runs `optimize` once for each network of this page: extract.sh LOOPEGG RUNS [OPTION OF optimize...]. What is there already is kept.
set -e
program=$1 runs=$2 here=$(cd "$(dirname "$0")" && pwd)
shift 2
mkdir -p "$runs"
python3 "$here/../accuracy/networks.py" "$runs/bases" > /dev/null
export LOOPEGG_STORE="${LOOPEGG_STORE:-$runs/latencies}" LOOPEGG_EVIDENCE="${LOOPEGG_EVIDENCE:-$runs/evidence}"

extract() {     # NAME BASE MAX_LOSS OPTION...
    name=$1 base=$2 loss=$3
    shift 3
    [ ! -e "$runs/$name/result.json" ] || return 0
    "$program" optimize "$runs/bases/$base.json" --max-loss "$loss" "$@" --out "$runs/$name" > "$runs/$name.log" 2>&1 ||
        { echo "$name failed:"; tail -n 3 "$runs/$name.log"; return 0; }
    echo "--max-loss $loss $*" > "$runs/$name/asked"
    echo "$name: $(grep -m 1 -i 'faster\|speed' "$runs/$name.log")"
}

extract extracted-1.0 resnet34-cifar10 1.0 "$@"
extract extracted-0.5 resnet34-cifar10 0.5 "$@"
extract extracted-0.7 wide-resnet22-4-cifar10 0.7 "$@"
extract extracted-0.7-16-8 wide-resnet16-8-cifar10 0.7 "$@"
extract extracted-0.75 resnet34-cifar10 0.75 "$@"
extract extracted-1.5 wide-resnet22-4-cifar10 1.5 "$@"
extract extracted-1.5-16-8 wide-resnet16-8-cifar10 1.5 "$@"
extract extracted-1.5-34 resnet34-cifar10 1.5 "$@"
extract extracted-0.35 resnet34-cifar10 0.35 "$@"
