"""Simulates hard disks and compares I/O schedulers.

>>> import headtime
>>> report = headtime.run({"drive.profile": "atlas10k", "workload": {"requests": 200},
...                        "schedulers": ["noop", "sptf"]}, progress=False)
>>> report.runs["scheduler"]
['noop', 'sptf']

A scenario is a dict, a file (TOML, or a job of fio) or a text. docs/scenario.md explains its keys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from . import _headtime
from ._errors import CheckError, Error, FileError, ScenarioError, UsageError
from ._headtime import Disk, Report, Swept, Table, __version__, drives
from ._policy import Policy, Request, Served, serve
from ._progress import Progress, shown
from ._sweep import sweep

__all__ = [
    "CheckError", "Disk", "Drive", "Error", "FileError", "Policy", "Report", "Request", "ScenarioError", "Served", "Swept", "Table",
    "Trace", "UsageError", "__version__", "drives", "replay", "report", "reproduce", "run", "serve", "sweep",
]

File = Union[str, "os.PathLike[str]"]
Scenario = Union[Mapping[str, Any], str, "os.PathLike[str]", None]

# As many requests of a trace as `headtime report` replays.
_MOST = 50_000


class Drive:
    """A drive: a name from `drives()`, a size and speed such as "18TB-7200", or a profile's file. Keywords change its keys.

    >>> drive = headtime.Drive("wd5000aaks", queue={"stream_cap": "250ms"})
    >>> drive.model, drive.capacity_bytes
    ('Western Digital Caviar Blue WD5000AAKS-00A7B0, 500 GB, 7200 rpm, SATA 3 Gb/s, 16 MB', 500107862016)
    >>> scenario = {"drive": drive, "schedulers": "noop", "workload": {"requests": 50}}
    >>> headtime.run(scenario, progress=False).runs["drive"]
    ['wd5000aaks']
    """

    def __init__(self, name: File, **override: Any) -> None:
        self.profile = os.fspath(name)
        self.override = override
        self._opened = opened = _headtime.Drive(self.profile)
        self.name: str = opened.name
        self.model: str = opened.model
        self.sector_bytes: int = opened.sector_bytes
        self.capacity_bytes: int = opened.sectors * opened.sector_bytes
        self._toml: str = opened.toml()

    def toml(self) -> str:
        """The profile as text, without the changes."""
        return self._toml

    def disk(self, seed: int = 1) -> Disk:
        """The drive as a model that takes commands in virtual time. Times are in ns.

        >>> disk = headtime.Drive("wd5000aaks").disk(seed=1)
        >>> disk.submit(0, 7, "read", lba=1_000_000, sectors=8)
        >>> at = disk.next_event()
        >>> [(tag, good) for tag, _, good in disk.poll(at)]
        [(7, True)]
        """
        if self.override:
            raise UsageError("disk() takes no changed keys; write the profile into a file, and open that", key="override")
        return self._opened.disk(seed)

    def _keys(self) -> dict[str, Any]:
        keys: dict[str, Any] = {"profile": self.profile}
        return {**keys, "override": self.override} if self.override else keys

    def __repr__(self) -> str:
        return f"<headtime.Drive {self.name}>"


class Trace:
    """A recorded trace: a file or a URL, or several that are one trace. Keywords are keys of `[trace]`, such as `format` or `first`.

    >>> trace = headtime.Trace(database)
    >>> len(trace)
    2922
    >>> trace.requests["op"][0]
    'read'
    """

    def __init__(self, file: File | Iterable[File], **reading: Any) -> None:
        one = isinstance(file, (str, os.PathLike))
        self.files = [os.fspath(one) for one in ([file] if one else file)]  # type: ignore[list-item, union-attr]
        self.reading = reading
        # Only the trace counts. The other keys make a scenario.
        self._read = _headtime.Trace({"drive.profile": drives()[0], "schedulers": "noop", "trace": self._keys()})
        self.notes: list[str] = self._read.notes

    @property
    def requests(self) -> Table:
        """A row for each request, in the order of arrival."""
        return self._read.requests

    def __len__(self) -> int:
        return len(self._read)

    def _keys(self) -> dict[str, Any]:
        return {"file": self.files, **self.reading}

    def __repr__(self) -> str:
        return f"<headtime.Trace of {len(self)} requests>"


def run(
    scenario: Scenario = None,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    requests: bool = False,
    progress: Progress = True,
) -> Report:
    """Makes the runs of a scenario, as `headtime sim run` does. `settings` are keys with other values.

    The report has Arrow tables of four levels: `runs`, `groups`, `processes`, and `requests` if asked for.

    >>> scenario = '''
    ... drive.profile = "atlas10k"
    ... schedulers = "noop"
    ... workload = { processes = 4, requests = 50 }
    ... '''
    >>> report = headtime.run(scenario, settings={"engine.depth": [1, 4]}, requests=True, progress=False)
    >>> report.runs["depth"], len(report.processes), len(report.requests)
    ([1, 4], 8, 400)

    An error names the key, and what is allowed:

    >>> headtime.run({"drive.profile": "atlas10k", "schedulers": "noop", "engine": {"dept": 4}})
    Traceback (most recent call last):
    headtime.ScenarioError: engine.dept: unknown key; did you mean `depth`? ...
    """
    with shown(progress) as show:
        return _headtime.run(_dict(scenario), _dict(settings), seed, jobs, requests, show)


def replay(
    trace: Trace | File,
    drive: Drive | str,
    *,
    schedulers: str | Iterable[str] = "noop",
    gate: str | Iterable[str] | None = None,
    depth: int | Iterable[int] = 1,
    closed: int | None = None,
    closed_per_process: bool = False,
    speed: float | None = None,
    fit: str = "error",
    devices: Iterable[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 1,
    jobs: int | None = None,
    requests: bool = False,
    progress: Progress = True,
) -> Report:
    """Replays a trace on a drive, as `headtime trace replay` does. By default requests come at their recorded times.

    >>> report = headtime.replay(database, "exos-x18", closed=32,
    ...                          schedulers=["noop", "sptf"], progress=False)
    >>> [round(iops) for iops in report.runs["iops"]]
    [492, 597]
    """
    trace = trace if isinstance(trace, Trace) else Trace(trace)
    keys = {**trace._keys(), "fit": fit, "replay": "open"}
    how = "open"
    if closed is not None:
        keys.update(replay="closed", outstanding=closed)
        how = f"{closed} outstanding"
    elif closed_per_process:
        keys["replay"] = "closed-per-process"
        how = "closed per process"
    elif speed is not None:
        keys["speed"] = float(speed)
        how = f"open, speed {speed:g}"
    if devices is not None:
        keys["devices"] = [str(device) for device in devices]
    names = ", ".join(Path(file).name for file in trace.files)
    scenario: dict[str, Any] = {
        "title": f"Replay of {names}, {how}",
        "seed": seed,
        "schedulers": schedulers,
        "drive": drive if isinstance(drive, Drive) else {"profile": drive},
        "engine.depth": depth,
        "trace": keys,
    }
    if gate is not None:
        scenario["engine.gate"] = gate
    return run(scenario, settings=settings, jobs=jobs, requests=requests, progress=progress)


def report(
    load: Scenario | Trace = None,
    *,
    like: str | None = None,
    drive: str | None = None,
    today: str = "mq-deadline@32",
    seeds: int = 5,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    progress: Progress = True,
) -> dict[str, Any]:
    """Recommends a setting for a disk, as `headtime report` does. The load is a scenario, a trace, or `like="vm+scrub"`.

    >>> advice = headtime.report(like="vm+scrub", drive="exos-x18", seeds=1, progress=False)
    >>> advice["drive"], advice["seeds"]
    ('exos-x18', 1)
    """
    if load is None and like is None:
        raise UsageError("the load is missing; give a scenario, a trace, or like=NAME")
    if isinstance(load, Trace):
        closed = load._read.is_closed
        keys = {"first": _MOST, **load._keys(), "fit": "wrap", "replay": "closed-per-process" if closed else "open"}
        load = {"trace": keys}
    with shown(progress) as show:
        text, notes = _headtime.report(_dict(load), like, drive, today, seeds, seed, _dict(settings), jobs, show)
    return {**json.loads(text), "notes": notes}


class Figure:
    """A figure of a paper, measured: `points` as dicts, `json()`, and the table of `headtime reproduce` as text."""

    def __init__(self, text: str, table: str) -> None:
        self._text, self._table = text, table
        self.points: list[dict[str, Any]] = json.loads(text)["points"]

    def json(self) -> str:
        """The figure as `headtime reproduce --format json` prints it."""
        return self._text

    def __str__(self) -> str:
        return self._table


def reproduce(id: str, *, quick: bool = False, jobs: int | None = None, progress: Progress = True) -> Figure:
    """Runs a figure of a paper and judges its points, as `headtime reproduce` does.

    >>> figure = headtime.reproduce("ncq-fig3", quick=True, progress=False)
    >>> {point["metric"] for point in figure.points if point["within"] is False}
    set()
    """
    with shown(progress) as show:
        return Figure(*_headtime.reproduce(id, quick, jobs, show))


def _dict(keys: Any) -> Any:
    """Any mapping as a dict."""
    return dict(keys) if isinstance(keys, Mapping) else keys
