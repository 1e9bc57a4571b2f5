"""A simulated month of a fleet: drives are drawn, each with a trace that is resampled from a recorded one.

    python fleet.py [DISKS] [DAYS]

Each trace has seconds of the recording, drawn with replacement, at random times: on average one in ten minutes.
"""

import io
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet

import headtime

DISKS, DAYS = (int(given) for given in (sys.argv[1:] + ["10", "30"][len(sys.argv) - 1 :]))
RECORDED = Path(__file__).resolve().parents[2] / "docs/replays/live/pgbench.csv.gz"
SECOND, DAY, APART = 10**9, 86_400 * 10**9, 600 * 10**9
HEADINGS = "arrival_ns,completion_ns,device,op,address_sectors,size_sectors,process,flags\n"


def seconds_of(trace: headtime.Trace) -> list[list[tuple[int, str]]]:
    """The requests of each second of a trace: arrival within the second, and the rest of a line."""
    seconds: dict[int, list[tuple[int, str]]] = {}
    table = trace.requests
    for at, op, lba, sectors, process in zip(*(table[name] for name in ("arrived_s", "op", "lba", "sectors", "process"))):
        rest = f",,0,{op},{lba},{sectors},{process},0\n"
        seconds.setdefault(int(at), []).append((round(at % 1 * SECOND), rest))
    return list(seconds.values())


def resample(seconds: list[list[tuple[int, str]]], path: Path, draw: random.Random) -> int:
    """Writes a trace. Returns the number of its requests."""
    count, at = 0, int(draw.expovariate(1 / APART))
    with open(path, "w") as file:
        file.write(HEADINGS)
        while at < DAYS * DAY or not count:
            second = draw.choice(seconds)
            file.writelines(f"{at + within}{rest}" for within, rest in second)
            count += len(second)
            at += SECOND + int(draw.expovariate(1 / APART))
    return count


with tempfile.TemporaryDirectory() as directory:
    draw = random.Random(1)
    began = time.monotonic()
    seconds = seconds_of(headtime.Trace(RECORDED))
    files = [Path(directory) / f"disk-{number}.csv" for number in range(DISKS)]
    requests = sum(resample(seconds, file, draw) for file in files)
    drives = [draw.choice(headtime.drives()) for _ in files]
    wrote, size = time.monotonic() - began, sum(file.stat().st_size for file in files)
    began, used = time.monotonic(), time.process_time()
    swept = headtime.sweep({
        "schedulers": "mq-deadline",
        "trace": {"file": str(files[0]), "fit": "wrap"},
        "sweep": {"together": [{"drive.profile": drives, "trace.file": [str(file) for file in files]}]},
    })
    took, used = time.monotonic() - began, time.process_time() - used
rows = pyarrow.table(swept.rows).to_pylist()
disks = [row for row in rows if row["origin"] == "all"]
assert swept.failed == 0 and len(disks) == DISKS and sum(row["requests"] for row in disks) == requests
parquet = io.BytesIO()
pyarrow.parquet.write_table(pyarrow.table(swept.rows), parquet)
slowest = max(disks, key=lambda row: row["response_p99_ms"])
days = DISKS * DAYS
print(f"{DISKS} disks of {len(set(drives))} models, {DAYS} days: {requests:,} requests, {requests / days / 86_400:.2f} a second and disk")
print(f"traces: {size / 1e6:.0f} MB in {wrote:.1f} s, {size / days / 1e3:.0f} kB a disk and day")
print(f"simulated in {took:.1f} s, {used / days:.3f} s of a processor a disk and day, {os.cpu_count()} processors")
print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
print(f"results: {len(swept.csv()) / DISKS:,.0f} bytes a disk in CSV, {parquet.tell() / DISKS:,.0f} in Parquet")
print(f"slowest: {slowest['drive']}, p99 {slowest['response_p99_ms']:.1f} ms")
print(f"10,000 disks on 1,000 such processors: {used / days * 10 * DAYS:.0f} s, {size / DISKS / 1e5:.0f} GB of traces")
