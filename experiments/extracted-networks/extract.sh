#!/bin/sh
# Runs `optimize` once for each network of the pages extracted-networks and unseen-networks: extract.sh LOOPEGG RUNS extracted|unseen.
# Results that exist are kept.
set -e
program=$1 runs=$2 networks=$3 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$runs"
# The rules with a floor: widths and streams keep at least half of their channels, or streams alone do ('computes' is in the rule of widths).
sed 's/(shares 1 8 ?x)/(shares 4 8 ?x)/' "$here/eighths.rules" > "$runs/at-least-half.rules"
sed '/computes/!s/(shares 1 8 ?x)/(shares 4 8 ?x)/' "$here/eighths.rules" > "$runs/half-streams.rules"
python3 "$here/../accuracy/networks.py" "$runs/bases" > /dev/null
export LOOPEGG_STORE="${LOOPEGG_STORE:-$runs/latencies}" LOOPEGG_EVIDENCE="${LOOPEGG_EVIDENCE:-$runs/evidence}"

extract() {     # BASE NAME MAX_LOSS [OPTION...]
    base=$1 out=$runs/$1/$2-$3 loss=$3
    shift 3
    [ ! -e "$out/result.json" ] || return 0
    mkdir -p "$runs/$base"
    set -- "$@" --target i7 --max-loss "$loss" --trials 1 --tune-seconds "$tune_seconds"
    "$program" optimize "$runs/bases/$base.json" "$@" --out "$out" > "$out.log" 2>&1 || { echo "$out failed:"; tail -n 3 "$out.log"; return 0; }
    echo "$*" | sed "s|$here/||; s|$runs/||" > "$out/options"
}

networks_of_extracted() {
    tune_seconds=60
    for loss in 0.35 0.5 0.75 1 1.5; do extract resnet34-cifar10 extracted $loss --rules "$here/eighths.rules"; done
    for base in wide-resnet22-4-cifar10 wide-resnet16-8-cifar10; do
        for loss in 0.7 1.2; do extract "$base" extracted $loss --rules "$here/eighths.rules"; done
        extract "$base" at-least-half 0.7 --rules "$runs/at-least-half.rules"
    done
    extract resnet34-cifar10 at-least-half 1 --rules "$runs/at-least-half.rules"
    extract resnet34-cifar10 half-streams 1 --rules "$runs/half-streams.rules"
}

networks_of_unseen() {
    tune_seconds=20
    for base in ${BASES:-resnet18-cifar10 vgg11-cifar10 regnet-cifar10}; do
        for loss in 0.7 1.2; do
            extract "$base" floor $loss --rules "$runs/at-least-half.rules"
            extract "$base" free $loss --rules "$here/eighths.rules"
        done
    done
}

case $networks in
extracted) networks_of_extracted ;;
unseen) networks_of_unseen ;;
*) echo "usage: extract.sh LOOPEGG RUNS extracted|unseen" >&2; exit 2 ;;
esac
