#!/usr/bin/env python3
"""Time of training a tree, beside scikit-learn on the same samples.

    benches/training.py [REPEATS]      (15)

Headtime grows a tree and one for each of 10 parts, prunes them, and chooses the size by cross-validation. scikit-learn's
DecisionTreeRegressor grows the same number of trees with the same limits, and computes one pruning path. Both take turns, so that
a busy moment of the machine meets both. Prints a table in Markdown: medians, and the median of the ratios. The last row has
GridSearchCV over the pruning path, which is scikit-learn's way to choose the size, once.

TRAINING names a built example `training`, which is built otherwise. Ends with 77 if scikit-learn is missing.
"""

import os
import statistics
import subprocess
import sys
import time

try:
    import numpy
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.tree import DecisionTreeRegressor
    import sklearn
except ImportError as missing:
    print(f"skipped: {missing}; install scikit-learn, for example in a virtual environment", file=sys.stderr)
    sys.exit(77)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    try:
        repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
        assert repeats > 0 and len(sys.argv) < 3
    except (ValueError, AssertionError):
        sys.exit("benches/training.py [REPEATS]; REPEATS is a number from 1 on")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    program = os.environ.get("TRAINING")
    if not program:
        build = ["cargo", "build", "--quiet", "--release", "--package", "headtime-qos", "--example", "training"]
        subprocess.run(build, check=True)
        program = os.environ.get("CARGO_TARGET_DIR", "target") + "/release/examples/training"
    headtime = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    samples = []
    for line in headtime.stdout:
        if line == "\n":
            break
        samples.append([float(word) for word in line.split(",")])
    samples = numpy.array(samples)
    x, y = samples[:, :-1].astype(numpy.float32), samples[:, -1].copy()
    leaves = 0

    def ours():
        nonlocal leaves
        headtime.stdin.write("\n")
        headtime.stdin.flush()
        leaves = int(headtime.stdout.readline())

    limits = dict(min_samples_split=20, min_samples_leaf=7, random_state=0)
    parts = [part for part, _ in KFold(10, shuffle=True, random_state=0).split(x)]

    def theirs():
        DecisionTreeRegressor(**limits).cost_complexity_pruning_path(x, y)
        for part in parts:
            DecisionTreeRegressor(**limits).fit(x[part], y[part])

    timed(ours), timed(theirs)
    pairs = [(timed(ours), timed(theirs)) for _ in range(repeats)]
    path = DecisionTreeRegressor(**limits).cost_complexity_pruning_path(x, y)
    alphas = sorted({max(alpha, 0.0) for alpha in path.ccp_alphas})
    search = GridSearchCV(DecisionTreeRegressor(**limits), {"ccp_alpha": alphas}, cv=10, n_jobs=1)
    searched = timed(lambda: search.fit(x, y))
    headtime.stdin.close()
    headtime.wait()

    one, other = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"{len(y)} samples, {x.shape[1]} features, {repeats} pairs, scikit-learn {sklearn.__version__}\n")
    print("| training | ms | Headtime's time over this |")
    print("|---|---:|---:|")
    print(f"| Headtime: 11 trees, pruned, size chosen ({leaves} leaves) | {1e3 * one:.1f} | |")
    print(f"| scikit-learn: 11 trees and a pruning path | {1e3 * other:.1f} | {ratio:.2f} |")
    print(f"| scikit-learn: `GridSearchCV`, {len(alphas)} sizes, once | {1e3 * searched:.0f} | {one / searched:.3f} |")


main()
