#!/bin/sh
# Makes a folder with everything that go.sh needs on a machine that is reached through a narrow pipe: pack.sh CIFAR_FOLDER OUT_FOLDER
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
[ -e "$2/cifar/part0.xz" ] || python3 "$here/../../fisher/truth/pack_cifar.py" pack "$1" "$2/cifar" 5 9
cp "$here"/*.py "$here/go.sh" "$here/../accuracy/networks.py" "$here/../accuracy/train.py" "$here/../accuracy/fit.py" "$here/../../fisher/truth/pack_cifar.py" "$2"
du -sh "$2"
