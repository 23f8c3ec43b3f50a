#!/bin/sh
# Runs `optimize` once for each network of this page: extract.sh LOOPEGG RUNS. What is there already is kept.
set -e
program=$1 runs=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$runs"
python3 "$here/../accuracy/networks.py" "$runs/bases" > /dev/null
export LOOPEGG_STORE="${LOOPEGG_STORE:-$runs/latencies}" LOOPEGG_EVIDENCE="${LOOPEGG_EVIDENCE:-$runs/evidence}"

extract() {     # BASE MAX_LOSS
    out=$runs/$1/extracted-$2 options="--target i7 --max-loss $2 --trials 1 --tune-seconds 60"
    [ ! -e "$out/result.json" ] || return 0
    mkdir -p "$runs/$1"
    # shellcheck disable=SC2086  # several words
    "$program" optimize "$runs/bases/$1.json" $options --out "$out" > "$out.log" 2>&1 || { echo "$out failed:"; tail -n 3 "$out.log"; return 0; }
    echo "$options" > "$out/asked"
}

for loss in 0.35 0.5 0.75 1 1.5; do extract resnet34-cifar10 $loss; done
for loss in 0.7 1.2; do extract wide-resnet22-4-cifar10 $loss; done
for loss in 0.7 1.2; do extract wide-resnet16-8-cifar10 $loss; done
