"""Runs a sweep of 10,000 runs on Ray with four workers, kills two of them, and compares with the same sweep on this machine.

    python sweep_on_ray.py [RUNS] [WORKERS] [KILLS]
"""

import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import headtime

RUNS, WORKERS, KILLS = (int(given) for given in (sys.argv[1:] + ["10000", "4", "2"][len(sys.argv) - 1 :]))
SCENARIO = {"drive.profile": "wd5000aaks", "schedulers": ["noop", "sptf"], "workload": {"processes": 4, "requests": 100}}
VARY = {"engine.depth": [1, 4], "seed": list(range(RUNS // 4))}


def workers() -> list[int]:
    """The processes that run batches for this process, by the names that Ray gives them."""
    parents, busy = {}, []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            process = int(stat.parent.name)
            parents[process] = int(stat.read_text().rpartition(")")[2].split()[1])
            if (stat.parent / "cmdline").read_bytes().startswith(b"ray::_work"):
                busy.append(process)
        except OSError:
            pass  # The process has ended meanwhile.

    def is_ours(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return [process for process in busy if is_ours(process)]


killed: list[int] = []
over = threading.Event()


def kill() -> None:
    while len(killed) < KILLS and not over.wait(random.uniform(0.1, 1)):
        victims = [process for process in workers() if process not in killed]
        if victims:
            victim = random.choice(victims)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)


with tempfile.TemporaryDirectory() as out:
    threading.Thread(target=kill, daemon=True).start()
    began, used, memory = time.monotonic(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    on_ray = headtime.sweep(SCENARIO, vary=VARY, on="ray", workers=WORKERS, out=out)
    took, used = time.monotonic() - began, time.process_time() - used
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    over.set()
    size = sum(file.stat().st_size for file in Path(out).glob("sweep.batches/*.batch"))
    began = time.monotonic()
    again = headtime.sweep(SCENARIO, vary=VARY, on="ray", workers=WORKERS, out=out)
    took_again = time.monotonic() - began
began = time.monotonic()
here = headtime.sweep(SCENARIO, vary=VARY)
took_here = time.monotonic() - began
print(f"{len(on_ray)} runs: {took:.1f} s on Ray, {took_here:.1f} s here; {len(killed)} workers killed")
plan = headtime._headtime.Plan(SCENARIO, VARY, None, None, RUNS, None, None)
sent = len(plan.batch(list(range(100)))) / 100
print(f"a run takes {1e3 * used / RUNS:.2f} ms of the processor that plans and collects, and {grown / RUNS:.0f} KiB of its memory")
print(f"a run moves {sent:,.0f} bytes to a worker, and {size / RUNS:,.0f} bytes of results")
print(f"started again: {took_again:.1f} s, since all results were there")
assert len(killed) == KILLS, "too few workers were killed: give more runs"
assert on_ray.failed == 0
assert on_ray.csv() == here.csv() == again.csv()
print("the results are the same, byte for byte")
