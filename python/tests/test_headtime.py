"""Runs, tables, errors, and the same bytes as the program."""

import doctest
import json
import os
import pickle
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import headtime

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "docs/replays/live/pgbench.csv.gz"
SMALL = {"drive.profile": "atlas10k", "workload": {"processes": 2, "requests": 100}, "schedulers": ["noop", "sptf"]}


def program(*args):
    """The output of the program; skips if HEADTIME does not name the program."""
    if "HEADTIME" not in os.environ:
        pytest.skip("HEADTIME names no program to compare with")
    return subprocess.run([os.environ["HEADTIME"], *args], check=True, capture_output=True, text=True).stdout


def test_doctests():
    for module in (headtime, headtime._policy, headtime._sweep):
        flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
        failed, tried = doctest.testmod(
            module, extraglobs={"headtime": headtime, "database": TRACE}, optionflags=flags
        )
        assert failed == 0 and tried > 0


PROGRAM = "drive.profile = 'wd5000aaks'\nschedulers = 'noop, stream'\nprogram.benchmark = 'grep'\nprogram.scale = 0.02\nseed = 7\n"
AS_TEXT = "drive.profile = 'atlas10k'\nworkload = {processes = 2, requests = 100}\nschedulers = ['noop', 'sptf']\n"


@pytest.mark.parametrize("scenario, text", [(SMALL, AS_TEXT), (PROGRAM, PROGRAM)])
def test_a_run_has_the_bytes_of_the_program(scenario, text, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(text)
    report = headtime.run(scenario, progress=False)
    assert report.json() == program("sim", "run", str(file), "--format", "json", "--reproducible")
    assert report.csv() == program("sim", "run", str(file), "--format", "csv")


def test_a_replay_has_the_bytes_of_the_program():
    report = headtime.replay(TRACE, "exos-x18", schedulers=["noop", "sptf"], closed=8, progress=False)
    args = ["--profile", "exos-x18", "--scheduler", "noop,sptf", "--closed", "8"]
    assert report.json() == program("trace", "replay", str(TRACE), *args, "--format", "json", "--reproducible")


def test_a_sweep_has_the_bytes_of_the_program():
    file = ROOT / "experiments/read-ahead.toml"
    settings = {"schedulers": "noop"}
    swept = headtime.sweep(file, settings=settings, progress=False)
    for form, text in (("csv", swept.csv()), ("json", swept.json())):
        assert text == program("sweep", str(file), "--set", "schedulers=noop", "--format", form)


def test_a_figure_and_advice_have_the_bytes_of_the_program():
    figure = headtime.reproduce("ncq-fig3", quick=True, progress=False)
    assert figure.json() == program("reproduce", "ncq-fig3", "--quick", "--format", "json")
    advice = headtime.report(like="parallel-readers", drive="wd5000aaks", seeds=1, progress=False)
    args = ["--like", "parallel-readers", "--profile", "wd5000aaks", "--seeds", "1", "--format", "json"]
    del advice["notes"]
    assert advice == json.loads(program("report", *args))


def test_tables_have_a_level_each_and_the_origin_of_their_values():
    report = headtime.run(SMALL, seed=3, requests=True, progress=False)
    assert [len(table) for table in (report.runs, report.groups, report.processes, report.requests)] == [2, 2, 4, 400]
    assert report.runs.metadata["headtime.seed"] == "3"
    assert report.runs.metadata["headtime.scenario_hash"] == report.scenario_hash
    served = [run for run, op in zip(report.requests["run"], report.requests["op"]) if op in ("read", "write")]
    assert [served.count(run) for run in (0, 1)] == report.runs["requests"]
    times = zip(*(report.requests[name] for name in ("arrived_s", "issued_s", "completed_s")))
    assert all(arrived <= issued < completed for arrived, issued, completed in times)
    assert headtime.run(SMALL, progress=False).requests is None


def test_arrow_takes_a_table_without_a_copy():
    pyarrow = pytest.importorskip("pyarrow")
    report = headtime.run(SMALL, progress=False)
    table = pyarrow.table(report.runs)
    assert table.to_pydict() == report.runs.to_pydict()
    assert table.schema.metadata[b"headtime.scenario_hash"].decode() == report.scenario_hash
    # The memory outlives the report.
    del report
    assert table["scheduler"].to_pylist() == ["noop", "sptf"]


def error_of(call, kind):
    with pytest.raises(kind) as raised:
        call()
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.file, copy.line, copy.key) == (
        str(raised.value), raised.value.file, raised.value.line, raised.value.key)
    return raised.value


def test_an_error_has_key_file_and_line(tmp_path):
    error = error_of(lambda: headtime.run({**SMALL, "engine": {"depht": 4}}), headtime.ScenarioError)
    assert (error.key, error.file, error.line) == ("engine.depht", None, None)
    assert "did you mean `depth`" in str(error)
    file = tmp_path / "a.toml"
    file.write_text("schedulers = 'noop'\ndrive.profile = 'atlas10k'\n[engine]\ndepth = 300\n")
    error = error_of(lambda: headtime.run(file), headtime.ScenarioError)
    assert (error.key, error.file, error.line) == ("engine.depth", str(file), 4)
    error = error_of(lambda: headtime.run(settings={"engine.depth": "many"}), headtime.UsageError)
    assert error.key == "engine.depth"
    error = error_of(lambda: headtime.run(tmp_path / "no.toml"), headtime.FileError)
    assert error.file == str(tmp_path / "no.toml")
    with pytest.raises(TypeError, match="engine.depth: is .*; allowed are"):
        headtime.run({**SMALL, "engine": {"depth": object()}})
    with pytest.raises(TypeError, match="a scenario is a dict, a file or a text"):
        headtime.run(3)


def test_a_missing_trace_is_a_file_error(tmp_path):
    file = str(tmp_path / "no.csv")
    assert error_of(lambda: headtime.Trace(file), headtime.FileError).file == file
    scenario = {"drive.profile": "atlas10k", "schedulers": "noop", "trace": {"file": file}}
    assert error_of(lambda: headtime.run(scenario), headtime.FileError).file == file


def test_dotted_keys_and_dicts_name_the_same_table():
    scenario = {**SMALL, "engine.depth": 4, "engine": {"merge": False}}
    runs = headtime.run(scenario, progress=False).runs
    assert (runs["depth"], runs["merge"]) == ([4, 4], [False, False])


def test_the_interpreter_runs_while_a_run_runs_and_ctrl_c_ends_it():
    ticks = []
    over = threading.Event()
    ticking = threading.Thread(target=lambda: [ticks.append(1) for _ in iter(lambda: over.wait(0.05), True)])
    ticking.start()
    interrupt = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        headtime.run(settings={"run.duration": "100000s"}, progress=False)
    over.set()
    ticking.join()
    assert time.monotonic() - began < 20
    assert len(ticks) >= 5


def test_progress_comes_to_an_end():
    seen = []
    headtime.run(settings={"run.duration": "10s"}, progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1] > 0
    assert all(before[0] <= after[0] for before, after in zip(seen, seen[1:]))


class Noop:
    """Serves requests in the order of arrival."""

    def __init__(self):
        self.queue = []

    def arrived(self, now, request):
        self.queue.append(request)

    def dispatch(self, now):
        return self.queue.pop(0) if self.queue else None

    def completed(self, now, request):
        pass


class Nearest(Noop):
    """Serves the request that begins nearest to the end of the last one."""

    head = 0

    def dispatch(self, now):
        if not self.queue:
            return None
        best = min(self.queue, key=lambda one: abs(one.lba - self.head))
        self.queue.remove(best)
        self.head = best.lba + best.sectors
        return best


def reads(seed, count=200):
    rng = random.Random(seed)
    return [headtime.Request("read", rng.randrange(976_000_000), 8) for _ in range(count)]


def test_a_scheduler_in_python_is_served_and_repeats():
    drive = headtime.Drive("wd5000aaks")
    noop, nearest, again = (
        headtime.serve(drive, policy(), [reads(client, 40) for client in range(8)], seconds=1000)
        for policy in (Noop, Nearest, Nearest)
    )
    assert len(noop.requests) == len(nearest.requests) == 320
    assert nearest.iops > 1.2 * noop.iops
    assert [one.completed for one in nearest.requests] == [one.completed for one in again.requests]
    assert noop.responses_ms(3) == sorted(noop.responses_ms(3)) and len(noop.responses_ms(3)) == 40
    assert all(one.arrived <= one.issued < one.completed for one in nearest.requests)


def test_the_loop_in_python_agrees_with_the_simulator(tmp_path):
    requests = reads(1)
    served = headtime.serve(headtime.Drive("wd5000aaks"), Noop(), [requests], seconds=1000)
    trace = tmp_path / "reads.trace"
    # DiskSim: arrival, device, block, blocks, flags; 1 is a read.
    trace.write_text("".join(f"{at * 100}.0 0 {one.lba} {one.sectors} 1\n" for at, one in enumerate(requests)))
    report = headtime.replay(str(trace), "wd5000aaks", closed=1, progress=False)
    assert report.runs["requests"] == [200]
    assert abs(report.runs["iops"][0] / served.iops - 1) < 0.02


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda one, now: headtime.Request("read", 0, 8), "which does not wait"),
        (lambda one, now: now, "answer with a later time"),
        (lambda one, now: None, "holds 2 requests and serves none"),
    ],
)
def test_the_loop_refuses_what_no_scheduler_may_do(answer, error):
    class Wrong(Noop):
        def dispatch(self, now):
            return answer(self.queue[0], now)

    with pytest.raises(headtime.CheckError, match=error):
        headtime.serve(headtime.Drive("wd5000aaks"), Wrong(), [reads(1), reads(2)])


def test_a_scheduler_in_python_may_wait():
    class Waits(Noop):
        waited = 0

        def dispatch(self, now):
            if self.queue and now < self.queue[0].arrived + 0.01:
                self.waited += 1
                return self.queue[0].arrived + 0.01
            return super().dispatch(now)

    policy = Waits()
    served = headtime.serve(headtime.Drive("wd5000aaks"), policy, [reads(1, 5)])
    assert policy.waited == 5
    assert all(one.issued == pytest.approx(one.arrived + 0.01) for one in served.requests)


def test_a_disk_refuses_commands_that_no_disk_takes():
    disk = headtime.Drive("wd5000aaks").disk()
    disk.submit(1000, 1, "read", 0, 8)
    assert disk.in_flight == 1
    for arguments, error in [
        ((999, 2, "read", 0, 8), "time goes back"),
        ((1000, 2, "trim", 0, 8), "allowed are read, write and flush"),
        ((1000, 2, "read", disk.sectors - 4, 8), "8 sectors from"),
        ((1000, 2, "read", 2**64 - 1, 8), "8 sectors from"),
        ((1000, 2, "read", 0, 0), "0 sectors from"),
    ]:
        with pytest.raises(headtime.UsageError, match=error):
            disk.submit(*arguments)
    for tag in range(2, disk.depth + 1):
        disk.submit(1000, tag, "read", 8 * tag, 8)
    with pytest.raises(headtime.UsageError, match="commands already"):
        disk.submit(1000, 99, "read", 0, 8)
    done = []
    while disk.in_flight:
        done += disk.poll(disk.next_event())
    assert sorted(tag for tag, _, _ in done) == list(range(1, disk.depth + 1))
    assert disk.next_event() is None
