#!/bin/sh
# Runs `optimize` for each network of this page: extract.sh LOOPEGG RUNS. What is there already is kept.
set -e
program=$1 runs=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$runs"
python3 "$here/../accuracy/networks.py" "$runs/bases" > /dev/null
export LOOPEGG_STORE="${LOOPEGG_STORE:-$runs/latencies}" LOOPEGG_EVIDENCE="${LOOPEGG_EVIDENCE:-$runs/evidence}"

extract() {     # BASE NAME MAX_LOSS [OPTION...]
    base=$1 out=$runs/$1/$2-$3 loss=$3
    shift 3
    [ ! -e "$out/result.json" ] || return 0
    mkdir -p "$runs/$base"
    set -- "$@" --target i7 --max-loss "$loss" --trials 1 --tune-seconds 20
    "$program" optimize "$runs/bases/$base.json" "$@" --out "$out" > "$out.log" 2>&1 || { echo "$out failed:"; tail -n 3 "$out.log"; return 0; }
    echo "$*" | sed "s|$here/||" > "$out/asked"
}

for base in ${BASES:-resnet18-cifar10 vgg11-cifar10 regnet-cifar10}; do
    for loss in 0.7 1.2; do
        extract "$base" floor $loss --rules "$here/../extracted-networks/at-least-half.rules"
        extract "$base" free $loss --rules "$here/../extracted-networks/eighths.rules"
    done
done
