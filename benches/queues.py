#!/usr/bin/env python3
"""Does a scan with a date shorten the drive's queue only where it must?

  HEADTIME=target/release/headtime benches/queues.py [SEED] [COUNT]

Draws scenarios of a scan that is to end with the run, and runs each with the three values of `freeblock.queue`. Prints a row for each, with the
part that is left in percent and the clients' requests a second. A mark says that clients lose 3 % although the long queue keeps the date.
"""

import runs

# About the MB/s of the drive's medium.
DRIVES = {"exos-x18": 230, "wd5000aaks": 70, "nearline-20tb": 230}
SECONDS = 100


def main():
    draw, count = runs.drawn(__doc__, 40)
    print("| drive, scheduler, depth | clients | part of the medium's rate | kept | promised | short | |")
    print("|---|---|---|---|---|---|---|")
    for _ in range(count):
        drive, scheduler = draw(list(DRIVES)), draw(["deadline", "noop", "sptf", "mq-deadline", "cfq"])
        depth, processes, reads = draw([4, 8, 32]), draw([4, 12, 16]), draw([1.0, 1.0, 0.7])
        in_order, size = draw([0.0, 0.0, 0.9]), draw(["4KiB", "64KiB"])
        part = draw([0.02, 0.05, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8])
        megabytes = int(part * SECONDS * DRIVES[drive])
        found = []
        for queue in ("kept", "promised", "short"):
            results = runs.runs(f"""
schedulers = "{scheduler}"
drive.profile = "{drive}"
engine = {{ depth = {depth}, merge = false }}
workload = {{ processes = {processes}, size = "{size}", read_share = {reads}, sequential_share = {in_order}, range = "0B..30GB" }}
run = {{ duration = "{SECONDS}s", repeats = 2 }}
freeblock = {{ block = "64KiB", range = "0B..{megabytes}MiB", idle_piece = "1MiB", finish_within = "{SECONDS}s", queue = "{queue}" }}
""")
            found.append([sum(values) / len(values) for values in zip(*((run["freeblock"]["left_percent"], run["iops"]) for run in results))])
        (left, kept), (_, promised), _ = found
        mark = "loses" if left < 0.05 and promised < 0.97 * kept else ""
        cells = " | ".join(f"{left:.2f} %, {iops:.0f}" for left, iops in found)
        clients = f"{processes} of {size}, {reads:.0%} reads, {in_order:.0%} in order"
        print(f"| {drive}, {scheduler}, {depth} | {clients} | {part:.0%} | {cells} | {mark} |", flush=True)


main()
