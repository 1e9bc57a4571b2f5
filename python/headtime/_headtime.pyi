from collections.abc import Callable
from os import PathLike
from typing import Any

__version__: str

_Show = Callable[[float, float, str], object] | None

class Table:
    """A table of results, for `pyarrow.table(..)`, `polars.DataFrame(..)` and every other reader of Arrow's C stream."""

    column_names: list[str]
    metadata: dict[str, str]
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def to_pydict(self) -> dict[str, list[Any]]: ...

class Report:
    """The results of `run`: all runs of a scenario. `str(report)` is the table of `headtime sim run`."""

    runs: Table
    groups: Table
    processes: Table
    requests: Table | None
    title: str | None
    seed: int
    scenario_hash: str
    notes: list[str]
    def json(self) -> str: ...
    def csv(self) -> str: ...

class Swept:
    """The results of a sweep. `str(swept)` is the table of `headtime sweep`."""

    rows: Table
    failed: int
    notes: list[str]
    scenario_hash: str
    def json(self) -> str: ...
    def csv(self) -> str: ...
    def __len__(self) -> int: ...

class Plan:
    notes: list[str]
    hash: str
    def __init__(
        self,
        scenario: Any,
        vary: Any,
        settings: Any,
        seed: int | None,
        max_runs: int,
        jobs: int | None,
        show: _Show,
    ) -> None: ...
    def __len__(self) -> int: ...
    def missing(self, directory: str | PathLike[str]) -> tuple[list[int], int]: ...
    def batch(self, numbers: list[int]) -> str: ...
    def results(self, directory: str | PathLike[str], bugs: dict[int, str]) -> Swept: ...
    def run(self, jobs: int | None, show: _Show) -> Swept: ...

class Drive:
    name: str
    model: str
    sector_bytes: int
    sectors: int
    def __init__(self, name: str) -> None: ...
    def toml(self) -> str: ...
    def disk(self, seed: int) -> Disk: ...

class Disk:
    """A drive's model in virtual time. Times are in ns from the start, and never go back."""

    depth: int
    in_flight: int
    sectors: int
    def submit(self, now: int, tag: int, op: str, lba: int = 0, sectors: int = 0, *, fua: bool = False) -> None:
        """Hands a command to the disk: a read, a write or a flush. `tag` is the caller's name for the command."""
    def next_event(self) -> int | None:
        """The next time at which `poll` may return a completion. None while nothing is under way."""
    def poll(self, now: int) -> list[tuple[int, int, bool]]:
        """Completions up to a time: tag, time, and True if the medium could be read or written."""

class Trace:
    is_closed: bool
    notes: list[str]
    requests: Table
    def __init__(self, scenario: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...

def run(
    scenario: Any, settings: Any, seed: int | None, jobs: int | None, requests: bool, show: _Show
) -> Report: ...
def run_batch(text: str, directory: str | PathLike[str], jobs: int | None) -> list[tuple[int, str]]: ...
def report(
    load: Any,
    like: str | None,
    drive: str | None,
    now: str,
    seeds: int,
    seed: int | None,
    settings: Any,
    jobs: int | None,
    show: _Show,
) -> tuple[str, list[str]]: ...
def reproduce(id: str, quick: bool, jobs: int | None, show: _Show) -> tuple[str, str]: ...
def drives() -> list[str]: ...
