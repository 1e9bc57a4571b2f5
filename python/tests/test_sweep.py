"""Sweeps that are cut into batches: interrupted, killed, started again, on full disks and on workers of another version."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import headtime
from headtime import _headtime

SCENARIO = {"drive.profile": "atlas10k", "workload": {"requests": 60}, "schedulers": ["noop", "sptf"]}
VARY = {"engine.depth": [1, 4], "seed": list(range(20))}


def sweep(**how):
    return headtime.sweep(SCENARIO, vary=VARY, progress=False, **how)


@pytest.fixture(scope="module")
def whole():
    return sweep().csv()


def batches(out):
    return sorted((out / "sweep.batches").glob("*.batch"))


def combinations(out):
    """Numbers of the combinations in the files, with repetitions."""
    lines = [line for file in batches(out) for line in file.read_text().splitlines()[1:]]
    return [json.loads(line.split(" ", 1)[1])["combination"] for line in lines]


def test_batches_give_the_bytes_of_one_go(tmp_path, whole):
    assert sweep(out=tmp_path, batch=7).csv() == whole
    assert (tmp_path / "sweep.csv").read_text() == whole
    assert json.loads((tmp_path / "sweep.json").read_text())["combinations"] == 80
    assert len(batches(tmp_path)) == 12
    assert sorted(combinations(tmp_path)) == list(range(80))


def test_a_second_start_makes_only_what_is_missing(tmp_path, whole):
    sweep(out=tmp_path, batch=10)
    lost = batches(tmp_path)[3]
    lost.unlink()
    damaged = batches(tmp_path)[0]
    damaged.write_text(damaged.read_text()[:-40])
    made = {file: file.stat().st_mtime_ns for file in batches(tmp_path)}
    seen = []
    again = headtime.sweep(SCENARIO, vary=VARY, out=tmp_path, batch=1, progress=lambda *now: seen.append(now))
    assert again.csv() == whole
    assert [file.stat().st_mtime_ns for file in made] == list(made.values())
    # 10 of the lost file, and the damaged last line of another.
    assert [done for done, _, text in seen if text != "preparing"] == list(range(70, 81))
    # The same call has nothing left to make.
    assert _headtime.Plan(SCENARIO, VARY, None, None, 100, None, None).missing(out := tmp_path / "sweep.batches")[0] == [], out


def test_a_sweep_that_was_killed_goes_on(tmp_path, whole):
    code = f"import headtime; headtime.sweep({SCENARIO!r}, vary={VARY!r}, out={str(tmp_path)!r}, batch=4, progress=False)"
    child = subprocess.Popen([sys.executable, "-c", code])
    while len(batches(tmp_path)) < 3 and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = batches(tmp_path)
    assert 3 <= len(kept) <= 20
    made = [file.stat().st_mtime_ns for file in kept]
    assert sweep(out=tmp_path).csv() == whole
    assert [file.stat().st_mtime_ns for file in kept] == made
    assert sorted(combinations(tmp_path)) == list(range(80))


def test_ctrl_c_says_what_is_kept(tmp_path, whole):
    code = f"import headtime; headtime.sweep({SCENARIO!r}, vary={VARY!r}, out={str(tmp_path)!r}, batch=1, progress=False)"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    while len(batches(tmp_path)) < 3 and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    said = child.communicate()[1]
    if child.returncode:
        assert f"of 80 combinations are kept in {tmp_path}" in said, said
    assert sweep(out=tmp_path).csv() == whole


def test_another_sweep_does_not_take_the_results(tmp_path):
    sweep(out=tmp_path)
    with pytest.raises(headtime.ScenarioError, match="workload.requests was 60 and is 61.*restart=True"):
        headtime.sweep({**SCENARIO, "workload": {"requests": 61}}, vary=VARY, out=tmp_path, progress=False)
    other = {**SCENARIO, "workload": {"requests": 61}}
    restarted = headtime.sweep(other, vary=VARY, out=tmp_path, restart=True, progress=False)
    assert restarted.csv() == headtime.sweep(other, vary=VARY, progress=False).csv()


def test_a_worker_of_another_version_is_an_error(tmp_path):
    plan = _headtime.Plan(SCENARIO, VARY, None, None, 100, None, None)
    text = plan.batch([0, 1])
    version = headtime.__version__
    for wrong in (text.replace(f'"version":"{version}"', '"version":"0.0.9"'), text.replace('"columns":"', '"columns":"0')):
        assert wrong != text
        with pytest.raises(headtime.UsageError, match=f"a worker has {version}.*install one version everywhere"):
            _headtime.run_batch(wrong, tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_full_disk_loses_no_batch_that_was_written(tmp_path, whole):
    full = tmp_path / "full"
    full.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], capture_output=True).returncode:
        pytest.skip("cannot mount a small file system")
    try:
        with pytest.raises(headtime.FileError, match="No space left.* of 80 combinations are kept") as raised:
            sweep(out=full, batch=10)
        assert raised.value.file.startswith(str(full))
        assert len(set(combinations(full))) < 80
        # No part of a file is left.
        assert not list((full / "sweep.batches").glob(".*"))
        subprocess.run(["mount", "-o", "remount,size=8m", full], check=True)
        assert sweep(out=full, batch=10).csv() == whole
    finally:
        subprocess.run(["umount", full], check=True)


def test_a_combination_that_cannot_run_has_its_error(tmp_path):
    vary = {"workload.range": ["0B..1GB", "0B..15TB"], "engine.depth": [1, 2], "drive.profile": ["atlas10k", "nearline-20tb"]}
    local = headtime.sweep({"workload": {"requests": 20}, "schedulers": "noop"}, vary=vary, progress=False)
    assert local.failed == 2
    assert [error is None for error in local.rows["error"]].count(False) == 2
    batched = headtime.sweep({"workload": {"requests": 20}, "schedulers": "noop"}, vary=vary, out=tmp_path, progress=False)
    assert batched.csv() == local.csv()


def test_a_call_with_wrong_arguments_says_what_is_allowed(tmp_path):
    with pytest.raises(headtime.UsageError, match="allowed are local, ray, slurm"):
        sweep(on="cloud")
    with pytest.raises(headtime.UsageError, match="needs out=DIRECTORY"):
        sweep(on="ray")
    with pytest.raises(headtime.UsageError, match="seed is swept"):
        sweep(seed=3)
    with pytest.raises(headtime.ScenarioError, match="give \\[sweep\\] in the scenario, or vary="):
        headtime.sweep(SCENARIO)
    with pytest.raises(headtime.FileError, match="cannot write"):
        (tmp_path / "file").write_text("")
        sweep(out=tmp_path / "file" / "below")


@pytest.mark.parametrize("cluster", ["debug", "local"])
def test_slurm_s_jobs_give_the_bytes_of_one_go(tmp_path, whole, cluster):
    pytest.importorskip("submitit")
    swept = sweep(on="slurm", out=tmp_path, batch=30, workers=2, options={"cluster": cluster})
    assert swept.csv() == whole
    assert len(batches(tmp_path)) == 3


def test_ray_gives_the_bytes_of_one_go_though_a_worker_dies(tmp_path):
    pytest.importorskip("ray")
    example = os.path.join(os.path.dirname(__file__), "..", "examples", "sweep_on_ray.py")
    done = subprocess.run([sys.executable, example, "800", "2", "1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 workers killed" in done.stdout and "byte for byte" in done.stdout


def test_the_command_line_writes_the_bytes_of_a_call(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text("drive.profile = 'atlas10k'\nschedulers = 'noop'\nworkload.requests = 30\n[sweep]\nseed = [1, 2]\n")
    command = [sys.executable, "-m", "headtime", "sweep", file, "--out", tmp_path, "--vary", "engine.depth=1,4"]
    done = subprocess.run([*command, "--set", "workload.processes=2"], capture_output=True, text=True, check=True)
    swept = headtime.sweep(file, vary={"engine.depth": [1, 4]}, settings={"workload.processes": 2}, progress=False)
    assert done.stdout == str(swept) and len(swept) == 4
    assert (tmp_path / "s.csv").read_text() == swept.csv()
    done = subprocess.run([*command, "--set", "workload.processes=3"], capture_output=True, text=True)
    assert done.returncode == 3 and "workload.processes was 2 and is 3" in done.stderr, done.stderr
