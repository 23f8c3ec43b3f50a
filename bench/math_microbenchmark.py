#!/usr/bin/env python3
"""Runs the math microbenchmark with loopegg's engine and with egglog, by turns, and prints the ratios that must hold.

  bench/math_microbenchmark.py [--build build] [--python PYTHON_WITH_EGGLOG] [--rounds 5]

Processor seconds (user and system) are compared, because on a busy machine they say more than the clock. The data is looked for in
$LOOPEGG_DATA (../shared/data next to the source). egglog (PyPI) belongs in an environment of its own."""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = r"""
import json, resource, sys, time
from egglog.bindings import EGraph
text = open(sys.argv[1]).read()
text = text[:text.index('(print-size Add)')]
graph = EGraph()
program = graph.parse_program(text)
clock, cpu = time.perf_counter(), time.process_time()
graph.run_program(*program)
print(json.dumps({'seconds': time.perf_counter() - clock, 'cpu_seconds': time.process_time() - cpu,
                  'peak_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def run(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(HERE, 'build'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    ours = os.path.join(args.build, 'bench', 'bench_math_microbenchmark')
    data = os.path.join(os.environ.get('LOOPEGG_DATA', os.path.join(HERE, '..', 'shared', 'data')), 'math-microbenchmark')
    egg, counts = os.path.join(data, 'math-microbenchmark.egg'), os.path.join(data, 'counts.csv')
    peer = os.path.exists(egg) and subprocess.run([args.python, '-c', 'import egglog'], capture_output=True).returncode == 0
    if not peer:
        print('SKIPPED: the comparison with egglog: the data or the Python package is not there')
    kinds = {'loopegg': [ours], 'loopegg --proofs': [ours, '--proofs']}
    if peer:
        kinds['egglog'] = [args.python, '-c', PEER, egg]
    results = {name: [] for name in kinds}
    for _ in range(args.rounds):
        for name, command in kinds.items():
            results[name].append(run(command))
    sizes = [(i['nodes'], i['classes']) for i in results['loopegg'][0]['iterations']]
    if os.path.exists(counts):
        known = [tuple(map(int, line.split(',')[1:])) for line in open(counts).read().split()[1:]]
        print('sizes of all %d iterations: %s' % (len(sizes), 'exact' if sizes == known else 'WRONG: %s' % sizes))
    cpu = {name: statistics.median(r['cpu_seconds'] for r in rows) for name, rows in results.items()}
    best = {name: min(r['cpu_seconds'] for r in rows) for name, rows in results.items()}
    peak = {name: max(r['peak_mb'] for r in rows) for name, rows in results.items()}
    for name in kinds:
        print('%-18s %6.3f s median, %6.3f s best of %d, %6.1f MB peak' % (name, cpu[name], best[name], args.rounds, peak[name]))
    if peer:
        print('time / egglog:        %.2f (median), %.2f (best)   must be at most 0.4' % (cpu['loopegg'] / cpu['egglog'], best['loopegg'] / best['egglog']))
    print('time with proofs:     %.2f (median), %.2f (best)   must be at most 1.3' % (cpu['loopegg --proofs'] / cpu['loopegg'], best['loopegg --proofs'] / best['loopegg']))
    print('memory with proofs:   %.2f   must be at most 1.5;  peak %.1f MB must be at most 110' % (peak['loopegg --proofs'] / peak['loopegg'], peak['loopegg']))
    # Two readings of 'a run with backoff against plain search from iteration 8 on': the same run, rule for rule and rest for rest, with
    # plain search; and the run with every rule in every iteration by plain search, over the iterations that it has.
    for last in (11, 20, 40, 60):
        spent = {True: [], False: []}
        for _ in range(args.rounds):
            for plain in (False, True):
                its = run([ours, '--backoff', '--iterations', str(last)] + (['--plain'] if plain else []))['iterations'][7:]
                spent[plain].append(sum(i['cpu'] for i in its))
        fast, slow = min(spent[False]), min(spent[True])
        print('backoff, iterations 8 to %d: incremental %.4f s, plain %.4f s, %.2f times faster%s' %
              (last, fast, slow, slow / fast, '' if last == 11 else '   must be at least 3'))
        if last == 11:
            every = min(sum(i['cpu'] for i in run([ours, '--plain'])['iterations'][7:]) for _ in range(args.rounds))
            print('every rule by plain search, iterations 8 to 11: %.4f s, the run with backoff is %.0f times faster   must be at least 3' % (every, every / fast))


if __name__ == '__main__':
    main()
