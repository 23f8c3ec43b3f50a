#!/bin/sh
# Stands in for 'loopegg optimize' where a test runs thousands of short jobs: what fake_optimize.py writes, without starting Python.
# loopegg passes: optimize MODEL --target T --seed N --out FOLDER
model=$2 target=$4 seed=$6 out=$8
[ -z "$FAKE_SECONDS" ] || sleep "$FAKE_SECONDS"
case $model in *broken*) echo "error: cannot read '$model': it is broken" >&2; exit 1 ;; esac
latency="\"iqr_ms\": 0.1, \"n\": 9, \"target\": \"$target\", \"measured\": true, \"disturbed\": false"
cat > "$out/result.json.partial" <<END
{"loopegg": 1, "sample": true, "model": "$model", "target": "$target", "seed": $seed,
 "original": {"median_ms": 6.0, $latency, "parameters": 10, "macs": 100}, "optimized": {"median_ms": 3.0, $latency, "parameters": 5, "macs": 50},
 "speedup": 2.0, "returned": "optimized", "guard": {"name": "none", "allowed": true, "ratio": 0.9}, "sites": [], "seconds": {"total": 1.5}}
END
mv "$out/result.json.partial" "$out/result.json"
