"""Sweeps: on this machine, on Ray, or on Slurm.

A sweep is cut into batches. Each batch is made by one task anywhere, which writes one file with the results, whole or not at all. The
directory with these files is the only state: a sweep that starts again makes only what the directory lacks.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

from . import _headtime
from ._errors import Error, FileError, UsageError
from ._progress import Progress, shown

# Most runs in a batch, unless the caller says.
_BATCH = 250
# Batches for each worker, so that slow ones even out.
_EACH = 8
# Times that Ray starts a batch again whose worker died.
_RETRIES = 3

# What a task returns: the runs that ended by a bug, or the error that ended it.
_Done = tuple[list[tuple[int, str]], Optional[Error]]
_Batch = tuple[list[int], str]


def sweep(
    scenario: Any = None,
    *,
    vary: Mapping[str, Any] | None = None,
    on: str = "local",
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    batch: int | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    max_runs: int = 20_000,
    jobs: int | None = None,
    restart: bool = False,
    progress: Progress = True,
    options: Mapping[str, Any] | None = None,
) -> _headtime.Swept:
    """Runs a scenario for many values of its keys, as `headtime sweep` does.

    `vary` adds keys to those of `[sweep]`. With `on="ray"` tasks of Ray make the runs, with `on="slurm"` jobs of Slurm. Both write into the
    directory `out`, which all machines have to share. The same call, started again, makes only the runs that are missing there. `options`
    are for `ray.remote`, or for submitit's executor.

    >>> swept = headtime.sweep({"drive.profile": "atlas10k", "workload": {"requests": 100}, "schedulers": "noop"},
    ...                        vary={"engine.depth": [1, 4], "seed": [1, 2, 3]}, progress=False)
    >>> swept.rows["engine.depth"], swept.rows["seed"]
    ([1, 1, 1, 4, 4, 4], [1, 2, 3, 1, 2, 3])
    """
    places = {"local": _local, "ray": _ray, "slurm": _slurm}
    if on not in places:
        raise UsageError(f"on={on!r}: allowed are {', '.join(places)}", key="on")
    if on != "local" and out is None:
        raise UsageError(f"on={on!r} needs out=DIRECTORY, which all workers share", key="out")
    if batch is not None and batch < 1:
        raise UsageError(f"batch={batch}: allowed is 1 and more", key="batch")
    keys = [dict(one) if isinstance(one, Mapping) else one for one in (scenario, vary, settings)]
    with shown(progress) as show:
        plan = _headtime.Plan(*keys, seed, max_runs, jobs, show)
        if out is None:
            return plan.run(jobs, show)
        is_file = isinstance(scenario, os.PathLike) or (isinstance(scenario, str) and not set("\n=") & set(scenario))
        name = Path(scenario).stem if is_file else "sweep"
        directory = Path(out).absolute() / f"{name}.batches"
        swept = _in(directory, plan, restart, places[on], workers or os.cpu_count() or 1, batch, jobs, options, show)
    for text, ending in ((swept.csv(), "csv"), (swept.json(), "json")):
        _write(directory.with_suffix(f".{ending}"), text)
    return swept


def _in(
    directory: Path,
    plan: _headtime.Plan,
    restart: bool,
    place: Callable[..., Iterator[tuple[_Batch, _Done]]],
    workers: int,
    size: int | None,
    jobs: int | None,
    options: Mapping[str, Any] | None,
    show: Any,
) -> _headtime.Swept:
    """Makes the runs that a directory lacks, and reads all results there."""
    try:
        if restart:
            shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{directory}: cannot write: {error.strerror}", str(directory)) from None
    missing, _ = plan.missing(directory)
    size = size or min(_BATCH, max(1, math.ceil(len(missing) / (workers * _EACH))))
    batches = [missing[at : at + size] for at in range(0, len(missing), size)]
    done, bugs = len(plan) - len(missing), {}
    try:
        texts = ((numbers, plan.batch(numbers)) for numbers in batches)
        for (numbers, _), (of_batch, error) in place(texts, directory, workers, jobs, dict(options or {})):
            if error is not None:
                raise error
            bugs.update(of_batch)
            done += len(numbers)
            if show is not None:
                show(done, len(plan), "")
    except (KeyboardInterrupt, Error) as error:
        kept = len(plan) - len(plan.missing(directory)[0])
        end = f"{kept} of {len(plan)} combinations are kept in {directory}, and the same call goes on there"
        if isinstance(error, Error):
            raise type(error)(f"{error}; {end}", error.file, error.line, error.key) from None
        raise KeyboardInterrupt(f"ended early; {end}") from None
    # What killed workers left.
    for part in directory.glob(".*.part"):
        part.unlink(missing_ok=True)
    return plan.results(directory, bugs)


def _work(text: str, directory: str, jobs: int | None = 1) -> _Done:
    """Makes a batch. Runs in a worker."""
    try:
        return _headtime.run_batch(text, directory, jobs), None
    except Error as error:
        return [], error


def _local(batches: Iterable[_Batch], directory: Path, workers: int, jobs: int | None, options: Any) -> Iterator[Any]:
    """Makes batches in this process, one after the other, each on all processors."""
    for batch in batches:
        yield batch, _work(batch[1], str(directory), jobs)


def _ray(batches: Iterable[_Batch], directory: Path, workers: int, jobs: int | None, options: Any) -> Iterator[Any]:
    try:
        import ray
    except ImportError:
        raise UsageError("on='ray' needs the package ray: pip install ray", key="on") from None
    if not ray.is_initialized():
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="critical")
    task = ray.remote(**{"max_retries": _RETRIES, **options})(_work)
    most = 2 * max(workers, int(ray.cluster_resources().get("CPU", 1)))
    pending: dict[Any, _Batch] = {}
    batches = iter(batches)
    try:
        while True:
            # So many at a time, so that a long sweep does not lie in memory as a whole.
            for batch in batches:
                pending[task.remote(batch[1], str(directory))] = batch
                if len(pending) >= most:
                    break
            if not pending:
                return
            ready, _ = ray.wait(list(pending), timeout=1)
            for one in ready:
                batch = pending.pop(one)
                yield batch, _result(lambda: ray.get(one))
    finally:
        for one in pending:
            ray.cancel(one, force=True)


def _slurm(batches: Iterable[_Batch], directory: Path, workers: int, jobs: int | None, options: Any) -> Iterator[Any]:
    try:
        import submitit
    except ImportError:
        raise UsageError("on='slurm' needs the package submitit: pip install submitit", key="on") from None
    executor = submitit.AutoExecutor(folder=directory / "jobs", cluster=options.pop("cluster", None))
    executor.update_parameters(**{"slurm_array_parallelism": workers, **options})
    all = list(batches)
    if not all:
        return
    submitted = executor.map_array(_work, [text for _, text in all], [str(directory)] * len(all))
    pending = dict(zip(submitted, all))
    try:
        while pending:
            ready = [job for job in pending if job.done()]
            for job in ready:
                batch = pending.pop(job)
                yield batch, _result(job.result)
            if not ready:
                time.sleep(0.5)
    finally:
        for job in pending:
            job.cancel()


def _result(get: Callable[[], _Done]) -> _Done:
    """The result of a task. A worker without this package, or a dead one, is an error."""
    try:
        return get()
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        lacks = "No module named 'headtime" in str(error) or "headtime' has no attribute" in str(error)
        what = f"install headtime {_headtime.__version__} there" if lacks else "see the worker's log"
        return [], Error(f"a worker gave up a batch: {said[-1]}; {what}")


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise FileError(f"{path}: cannot write: {error.strerror}", str(path)) from None
