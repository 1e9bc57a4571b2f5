#!/usr/bin/env python3
"""Does `headtime qos plan` say rightly if all goals of a mix of programs can be kept?

  HEADTIME=target/release/headtime benches/admission.py [SEED] [MIXES]

Draws mixes of two or three programs with goals, with or without a backup. Asks `qos plan` about each mix, and runs the mix under the gate
`windows`. A goal is kept if the program is at most 5 % late. Prints a row for each verdict. SEED is 1 and MIXES is 200 if not given.
"""

import runs

LATE_PERCENT = 5.0
BENCHMARKS = {
    "full-seq": lambda draw: f'size = "{draw([1, 2, 4])}GiB"',
    "seq-rand": lambda draw: f'size = "{draw([1, 2])}GiB"\nphase = "{draw([100, 250])}MiB"',
    "ior-mpi-io": lambda draw: f'checkpoint = "{draw([512, 1024])}MiB"',
    "s3asim": lambda draw: "",
}


def scenario(draw):
    """A random mix, as TOML."""
    text = f"""
seed = {draw(range(1, 1000))}
schedulers = "cfq"
drive.profile = "{draw(["barracuda-7200.10-160", "wd5000aaks"])}"
engine = {{ depth = 31, gate = "windows" }}
cluster = {{ servers = {draw([3, 9])}, nodes = 4 }}
"""
    for number in range(draw([2, 2, 3])):
        benchmark = draw(list(BENCHMARKS))
        goal = draw([1.3, 1.6, 2, 2.5, 3, 4, 5, 6])
        start = "" if benchmark in ("ior-mpi-io", "s3asim") else f'start = "{100 * number}GiB"\n'
        text += f'[[program]]\nname = "{benchmark} {number + 1}"\nbenchmark = "{benchmark}"\ngoal = "{goal}x"\n{start}{BENCHMARKS[benchmark](draw)}\n'
    return text + draw(["", '[[program]]\nbenchmark = "backup"\nsize = "100GiB"\nstart = "300GiB"\n'])


def main():
    draw, mixes = runs.drawn(__doc__, 200)
    counts = {}
    for mix in range(mixes):
        text = scenario(draw)
        with runs.scenario_file(text) as name:
            said = runs.headtime("qos", "plan", name).strip().splitlines()[-1].split(": ")[-1].rstrip(".")
        run = runs.runs(text)[0]
        late = [one["late_percent"] for one in run["programs"] if one.get("late_percent") is not None]
        kept = all(one <= LATE_PERCENT for one in late)
        counts.setdefault(said, [0, 0])[kept] += 1
    print(f"| verdict | mixes of {mixes} | all goals kept |\n|---|---|---|")
    for said, (missed, kept) in sorted(counts.items()):
        print(f"| {said} | {missed + kept} | {kept} |")


main()
