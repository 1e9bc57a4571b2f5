"""Exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """An error with its place: `file`, `line` and `key`, each None if not known."""

    __module__ = "headtime"

    def __init__(
        self, message: str, file: str | None = None, line: int | None = None, key: str | None = None
    ) -> None:
        super().__init__(message, file, line, key)
        self.message, self.file, self.line, self.key = message, file, line, key

    def __str__(self) -> str:
        return self.message


class ScenarioError(Error):
    """A scenario, profile, trace or results of a sweep are wrong."""

    __module__ = "headtime"


class UsageError(Error):
    """An argument of a call is wrong."""

    __module__ = "headtime"


class FileError(Error):
    """A file cannot be read or written."""

    __module__ = "headtime"


class CheckError(Error):
    """A check failed."""

    __module__ = "headtime"
