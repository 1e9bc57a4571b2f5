"""Progress of long calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Union

Show = Callable[[float, float, str], object]
Progress = Union[bool, Show]


@contextmanager
def shown(progress: Progress) -> Iterator[Show | None]:
    """A function that shows runs done, all runs, and a text. None if nothing is to be shown."""
    if callable(progress):
        yield progress
        return
    try:
        from tqdm import tqdm
    except ImportError:
        progress = False
    if not progress:
        yield None
        return
    # No bar where standard error is no terminal.
    with tqdm(disable=None, unit="run", bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f} [{elapsed}<{remaining}]{postfix}") as bar:

        def show(done: float, all: float, text: str) -> None:
            bar.total = all
            bar.n = done
            bar.set_postfix_str(text, refresh=True)

        yield show
