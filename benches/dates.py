#!/usr/bin/env python3
"""Does a scan keep its date, and does it take the share of the time that it asks for?

  HEADTIME=target/release/headtime benches/dates.py [DRIVE]..

Six clients read 4 KiB at random, beside a scan with a date under `deadline` at depth 1. Near clients read in the range of the scan, far clients
anywhere. The date is so near that the scan needs this share of its rate in idle time. Prints a row for each drive and kind of client, with a
number for each date.
"""

import sys

import runs

# GB of the scan.
DRIVES = {"wd5000aaks": 1.0, "barracuda-7200.10-160": 0.8, "exos-x18": 3.0, "nearline-20tb": 3.2}
DATES = (10, 20, 40, 60, 80)


def run(drive, duration, scan="", client="processes = 6", range_of_clients=""):
    """The results of a run."""
    return runs.runs(f"""
schedulers = "deadline"
drive.profile = "{drive}"
engine.depth = 1
run.duration = "{duration}"
[[workload]]
name = "clients"
size = "4KiB"
{client}
{range_of_clients}
{scan}
""")[0]


def main():
    drives = sys.argv[1:] or list(DRIVES)
    if not set(drives) <= set(DRIVES):
        sys.exit(__doc__)
    dates = ", ".join(map(str, DATES))
    print(f"| drive, its rate in MB/s | clients | left at dates of {dates} % of the rate, % | time asked, % | time taken, % | clients a second; alone |")
    print("|---|---|---|---|---|---|")
    for drive in drives:
        megabytes = int(DRIVES[drive] * 1000)
        scan = f'[freeblock]\nblock = "64KiB"\nrange = "0B..{megabytes}MB"\n'
        idle = run(drive, "60s", scan + 'idle_after = "0s"\nidle_piece = "4MiB"\n', 'processes = 1\nthink = "1s"')
        rate = megabytes / idle["freeblock"]["ended_s"]
        for clients in ("near", "far"):
            where = f'range = "0B..{megabytes}MB"' if clients == "near" else ""
            alone = run(drive, "20s", range_of_clients=where)["iops"]
            rows = []
            for share in DATES:
                span = f"{int(1e5 * megabytes / (rate * share))}ms"
                made = run(drive, span, scan + f'finish_within = "{span}"\n', range_of_clients=where)
                promise = made["promise"]
                rows.append((made["freeblock"]["left_percent"], promise["asked_percent"], promise["taken_percent"], made["iops"]))
            cells = [", ".join(f"{value:.{places}f}" for value in column) for column, places in zip(zip(*rows), (1, 1, 1, 0))]
            print(f"| {drive}, {rate:.0f} | {clients} | {cells[0]} | {cells[1]} | {cells[2]} | {cells[3]}; {alone:.0f} |", flush=True)


main()
