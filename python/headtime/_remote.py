"""Traces in object storage: copies on this node, made by the library fsspec."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import posixpath
from pathlib import Path
from typing import Any

from ._errors import FileError, UsageError


def cache() -> Path:
    """The directory of the copies: HEADTIME_CACHE, or `headtime` in the user's cache directory."""
    here = os.environ.get("HEADTIME_CACHE")
    return Path(here or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "headtime"))


def fetch(url: str) -> str:
    """The name of a local copy of an object. Copies are found by URL and by what the store says of the object: its size and checksum or
    time. A copy appears whole or not at all, and processes of one node that want the same object wait for one download."""
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"{url}: needs the package fsspec: pip install headtime[fsspec]", key="trace.file") from None
    try:
        store, path = fsspec.core.url_to_fs(url)
        about = store.info(path)
    except (ImportError, ValueError) as error:
        # A protocol without its package, or one that nobody knows.
        raise UsageError(f"{url}: {error}", key="trace.file") from None
    except Exception as error:
        raise _cannot(url, error) from None
    state = hashlib.sha256(json.dumps([url, about], sort_keys=True, default=str).encode()).hexdigest()
    copy = cache() / state[:32] / (posixpath.basename(path.rstrip("/")) or "trace")
    try:
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            with open(copy.parent / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not copy.exists():
                    _download(url, store, path, about.get("size"), copy)
    except OSError as error:
        raise _cannot(url, error, f" into {copy.parent} (HEADTIME_CACHE names another directory)") from None
    return str(copy)


def _download(url: str, store: Any, path: str, size: int | None, copy: Path) -> None:
    part = copy.with_name(".part")
    try:
        store.get_file(path, str(part))
        got = part.stat().st_size
        if size is not None and got != size:
            raise OSError(f"{got} bytes came of {size}")
        part.replace(copy)
    except OSError:
        raise
    except Exception as error:
        # Stores have exceptions of their own.
        raise _cannot(url, error) from None
    finally:
        part.unlink(missing_ok=True)


def _cannot(url: str, error: BaseException, where: str = "") -> FileError:
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and not where:
        # Stores say so, too, if a server does not answer. Then the cause knows more.
        if cause is None or getattr(cause, "status", None) in (404, 410):
            return FileError(f"{url}: cannot fetch: there is no such object", url)
        error = cause
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FileError(f"{url}: cannot fetch{where}: {reason}", url)
