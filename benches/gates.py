#!/usr/bin/env python3
"""Does a gate keep a lone reader from starving in the drive's queue, and what does that cost others?

  HEADTIME=target/release/headtime benches/gates.py [SEED] [POINTS]

Draws points: drive, a reader with one request at a time, and a bulk side. Runs each point under all gates below. A gate keeps the reader if
the reader has 0.9 of its rate under depth 1. A gate keeps the bulk side if that has 0.8 of its rate under the best fixed gate that keeps the
reader. Prints the points that each gate keeps. SEED is 1 and POINTS is 120 if not given; 120 points take a minute.
"""

import json

import runs

GATES = ["head-time", "depth=1", "depth=2", "depth=4", "depth=8", "depth"]
GATES += [f"rsd:age_th={age}" for age in (0, 1, 2, 4, 8, 16, 30, 90)]
READER_KEEPS, BULK_KEEPS = 0.9, 0.8


def scenario(draw):
    """A random point, as TOML."""
    drive = draw(["wd5000aaks", "barracuda-7200.10-160", "exos-x18", "nearline-20tb"])
    return f"""
seed = {draw(range(1, 1000))}
schedulers = "noop"
drive.profile = "{drive}"
engine = {{ merge = false, depth = 32, gate = {json.dumps(GATES)} }}
run = {{ warm_up = "3s", duration = "43s" }}
[[workload]]
name = "reader"
sequential_share = {draw([0, 1])}
size = "{draw(["4KiB", "64KiB"])}"
think = "{draw(["0ms", "1ms", "20ms"])}"
[[workload]]
name = "bulk"
sequential_share = {draw([0, 0.9, 1])}
read_share = {draw([1, 0.67, 0])}
size = "{draw(["4KiB", "64KiB", "256KiB", "1MiB"])}"
outstanding = {draw([1, 4, 32])}
"""


def rates(text):
    """Requests a second of the reader and of the bulk side, by gate."""
    of = lambda run, name: next(one["iops"] for one in run["by_name"] if one["name"] == name)
    return {gate: (of(run, "reader"), of(run, "bulk")) for gate, run in zip(GATES, runs.runs(text))}


def main():
    draw, points = runs.drawn(__doc__, 120)
    kept = {gate: [0, 0, 0] for gate in GATES}
    for _ in range(points):
        by_gate = rates(scenario(draw))
        alone = by_gate["depth=1"][0]
        keeps_reader = {gate: by_gate[gate][0] >= READER_KEEPS * alone for gate in GATES}
        fixed = [gate for gate in GATES[1:] if keeps_reader[gate]]
        best = max(by_gate[gate][1] for gate in fixed)
        for gate in GATES:
            keeps_bulk = by_gate[gate][1] >= BULK_KEEPS * best
            held = (keeps_reader[gate], keeps_bulk, keeps_reader[gate] and keeps_bulk)
            kept[gate] = [count + one for count, one in zip(kept[gate], held)]
    print(f"| gate | reader | bulk side | both, of {points} | both, % |\n|---|---|---|---|---|")
    for gate, (reader, bulk, both) in kept.items():
        print(f"| `{gate}` | {reader} | {bulk} | {both} | {100 * both / points:.0f} |")


main()
