"""Traces in object storage: copied once for a node, found by what the store says of them, and the same results as a file."""

import functools
import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import headtime

fsspec = pytest.importorskip("fsspec")

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "docs/replays/live/pgbench.csv.gz"
VARY = {"engine.depth": [1, 4], "schedulers": ["noop", "sptf"]}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path):
    """The URL of a directory that a server on this machine serves, the directory, and the paths that were asked for."""
    pytest.importorskip("aiohttp")
    root, asked = tmp_path / "served", []
    root.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", root, asked
        running.shutdown()


def replay(trace, **how):
    return headtime.replay(trace, "exos-x18", closed=8, progress=False, **how).json()


def copies(cache):
    return [file for file in cache.rglob("*") if file.is_file() and file.stat().st_size]


def scenario(trace):
    keys = {"file": str(trace), "first": 300, "replay": "closed", "outstanding": 4}
    return {"drive.profile": "exos-x18", "trace": keys}


def test_an_object_has_the_results_of_a_file(cache):
    fsspec.filesystem("memory").pipe("/traces/pgbench.csv.gz", TRACE.read_bytes())
    url = "memory://traces/pgbench.csv.gz"
    assert replay(url) == replay(TRACE) == replay(headtime.Trace(url))
    assert replay(f"file://{TRACE}") == replay(TRACE)
    assert sorted(file.name for file in copies(cache)) == ["pgbench.csv.gz"] * 2
    programs = [{"schedulers": "noop", "program.benchmark": "replay", "program.trace": trace, "drive.profile": "wd5000aaks", "run.duration": "2s"}
                for trace in (url, str(TRACE))]
    remote, local = (headtime.run(program, progress=False).json() for program in programs)
    assert remote == local


def test_a_file_is_not_copied(cache):
    replay(TRACE)
    assert not cache.exists()


def test_a_scenario_in_a_file_may_name_an_object(tmp_path):
    fsspec.filesystem("memory").pipe("/traces/pgbench.csv.gz", TRACE.read_bytes())
    file = tmp_path / "s.toml"
    file.write_text("drive.profile = 'exos-x18'\nschedulers = 'noop'\ntrace.file = 'memory://traces/pgbench.csv.gz'\n")
    there = headtime.run(file, progress=False)
    assert there.json() == headtime.run(file, settings={"trace.file": str(TRACE)}, progress=False).json()


def test_processes_of_one_node_download_an_object_once(server, cache):
    url, root, asked = server
    (root / "trace.csv.gz").write_bytes(TRACE.read_bytes())
    code = f"import headtime; print(len(headtime.Trace('{url}/trace.csv.gz')))"
    children = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [child.communicate()[0] for child in children] == ["2922\n"] * 4
    assert asked == ["/trace.csv.gz"]
    assert [file.name for file in copies(cache)] == ["trace.csv.gz"]


def test_a_changed_object_is_copied_again_and_a_sweep_refuses_it(server, cache, tmp_path):
    url, root, asked = server
    served, url = root / TRACE.name, f"{url}/{TRACE.name}"
    served.write_bytes(TRACE.read_bytes())
    first = headtime.sweep(scenario(url), vary=VARY, out=tmp_path / "out", progress=False)
    assert first.csv() == headtime.sweep(scenario(TRACE), vary=VARY, progress=False).csv()
    assert len(asked) == 1
    again = headtime.Trace(url)
    again.requests  # The copy serves.
    assert len(asked) == 1
    served.write_bytes((ROOT / "docs/replays/live/grep.csv.gz").read_bytes())
    os.utime(served, (1, 1))
    with pytest.raises(headtime.ScenarioError, match="pgbench.csv.gz has other contents.*restart=True"):
        headtime.sweep(scenario(url), vary=VARY, out=tmp_path / "out", progress=False)
    assert len(asked) == 2 and len(copies(cache)) == 2


def test_workers_on_other_nodes_copy_for_themselves(server, cache, tmp_path):
    pytest.importorskip("submitit")
    url, root, asked = server
    (root / "trace.csv.gz").write_bytes(TRACE.read_bytes())
    headtime.Trace(f"{url}/trace.csv.gz")
    # This node lost its copy, as if the workers were on another one.
    for file in copies(cache):
        file.unlink()
    how = {"on": "slurm", "batch": 1, "workers": 2, "options": {"cluster": "local"}}
    swept = headtime.sweep(scenario(f"{url}/trace.csv.gz"), vary=VARY, out=tmp_path / "out", progress=False, **how)
    assert swept.failed == 0 and len(asked) == 2
    here = headtime.sweep(scenario(f"{url}/trace.csv.gz"), vary=VARY, progress=False)
    assert swept.csv() == here.csv()


def test_errors_name_the_object_and_what_to_do(server, tmp_path, monkeypatch):
    url, root, _ = server
    for missing in ("memory://traces/none.csv", f"{url}/none.csv", f"file://{tmp_path}/none.csv"):
        with pytest.raises(headtime.FileError, match="none.csv: cannot fetch: there is no such object") as raised:
            replay(missing)
        assert raised.value.file == missing
    with pytest.raises(headtime.FileError, match="127.0.0.1:1/x.csv: cannot fetch: .*onnect"):
        replay("http://127.0.0.1:1/x.csv")
    with pytest.raises(headtime.UsageError, match="zzz://x.csv: .*zzz"):
        replay("zzz://x.csv")
    (root / "trace.csv.gz").write_bytes(TRACE.read_bytes())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADTIME_CACHE", str(tmp_path / "file"))
    with pytest.raises(headtime.FileError, match="cannot fetch into .*Not a directory"):
        replay(f"{url}/trace.csv.gz")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(headtime.UsageError, match=r"needs the package fsspec: pip install headtime\[fsspec\]"):
        replay(f"{url}/trace.csv.gz")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_full_disk_leaves_no_part_of_an_object(cache):
    cache.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", cache], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system")
    try:
        fsspec.filesystem("memory").pipe("/traces/pgbench.csv.gz", TRACE.read_bytes())
        with pytest.raises(headtime.FileError, match="cannot fetch into .*HEADTIME_CACHE.*No space left on device"):
            replay("memory://traces/pgbench.csv.gz")
        assert copies(cache) == []
        subprocess.run(["mount", "-o", "remount,size=8m", cache], check=True)
        assert replay("memory://traces/pgbench.csv.gz") == replay(TRACE)
    finally:
        subprocess.run(["umount", cache], check=True)
