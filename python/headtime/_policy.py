"""Schedulers written in Python, on the model of a drive.

A Python scheduler serves a few ten thousand requests a second, which is enough to try a rule. The loop checks every answer of the scheduler.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Union

from ._errors import CheckError, UsageError

_NS = 1_000_000_000


@dataclass(eq=False)
class Request:
    """A request of a client. Times are in seconds from the start."""

    op: str
    lba: int
    sectors: int
    think: float = 0.0
    """Time from the completion of the client's last request to this one."""
    client: int = 0
    arrived: float = 0.0
    issued: float | None = None
    completed: float | None = None


# A request to serve now, a time until which the disk waits, or None: nothing is to be done before another request arrives.
Answer = Union[Request, float, None]


class Policy(Protocol):
    """A scheduler. `now` is in seconds."""

    def arrived(self, now: float, request: Request) -> None:
        """Queues a request."""

    def dispatch(self, now: float) -> Answer:
        """Chooses the next request of those that have arrived. A time later than `now` holds the disk until then, or until a request arrives or
        completes."""

    def completed(self, now: float, request: Request) -> None:
        """Notes that the disk has served a request."""


@dataclass
class Served:
    """The requests that a scheduler has served, in the order of their completion."""

    seconds: float
    requests: list[Request] = field(repr=False)

    @property
    def iops(self) -> float:
        return len(self.requests) / self.seconds if self.seconds else 0.0

    def responses_ms(self, client: int | None = None) -> list[float]:
        """Times from arrival to completion, in ms and sorted, of one client or of all."""
        mine = (one for one in self.requests if client is None or one.client == client)
        return sorted((one.completed - one.arrived) * 1e3 for one in mine if one.completed is not None)


def serve(
    drive: "Drive",  # noqa: F821
    policy: Policy,
    clients: Iterable[Iterable[Request]],
    *,
    seconds: float = 10.0,
    depth: int = 1,
    seed: int = 1,
) -> Served:
    """Serves clients under a scheduler of one's own. Each client is a sequence of requests, and makes the next one when the last is complete.

    >>> class Noop:
    ...     def __init__(self): self.queue = []
    ...     def arrived(self, now, request): self.queue.append(request)
    ...     def dispatch(self, now): return self.queue.pop(0) if self.queue else None
    ...     def completed(self, now, request): pass
    >>> clients = [[headtime.Request("read", 1000 * n, 8) for n in range(3)]] * 2
    >>> served = headtime.serve(headtime.Drive("wd5000aaks"), Noop(), clients)
    >>> [one.client for one in served.requests]
    [0, 1, 0, 1, 0, 1]

    A `CheckError` names what no scheduler may do: serve a request twice, or before its arrival, or leave the disk idle for ever.
    """
    disk = drive.disk(seed)
    if not 1 <= depth <= disk.depth:
        raise UsageError(f"depth={depth}: allowed are 1 to {disk.depth}, as the drive takes", key="depth")
    loop = _Loop(disk, policy, [iter(client) for client in clients], depth)
    return loop.run(seconds)


class _Loop:
    """Virtual time. Invariant: every request that has arrived is in `waiting`, in `inside`, or in `served`."""

    def __init__(self, disk: "Disk", policy: Policy, clients: Sequence[Iterator[Request]], depth: int) -> None:  # noqa: F821
        self.disk, self.policy, self.clients, self.depth = disk, policy, clients, depth
        self.now = 0
        self.coming: list[tuple[int, int, Request]] = []
        self.waiting: set[Request] = set()
        self.inside: dict[int, Request] = {}
        self.tags = list(range(depth))
        self.served: list[Request] = []
        self.hold: int | None = None
        for client in range(len(clients)):
            self.asks(client)

    def asks(self, client: int) -> None:
        request = next(self.clients[client], None)
        if request is not None:
            # A list may hold the same request for several clients.
            request = Request(request.op, request.lba, request.sectors, request.think, client)
            at = self.now + round(request.think * _NS)
            heapq.heappush(self.coming, (at, client, request))

    def run(self, seconds: float) -> Served:
        end = round(seconds * _NS)
        while True:
            self.fill()
            times = [time for time in (self.disk.next_event(), self.hold) if time is not None]
            if self.coming:
                times.append(self.coming[0][0])
            if not times:
                break
            self.now = max(self.now, min(times))
            if self.now > end:
                self.now = end
                break
            self.advance()
        if self.waiting and not self.inside and not self.coming and self.hold is None:
            raise CheckError(f"the scheduler holds {len(self.waiting)} requests and serves none of them")
        return Served(self.now / _NS, self.served)

    def advance(self) -> None:
        """Handles what happens at this time."""
        if self.hold is not None and self.hold <= self.now:
            self.hold = None
        for tag, at, is_good in self.disk.poll(self.now):
            request = self.inside.pop(tag)
            self.tags.append(tag)
            if not is_good:
                raise CheckError(f"sectors from {request.lba} on cannot be read")
            request.completed = at / _NS
            self.served.append(request)
            self.hold = None
            self.policy.completed(self.now / _NS, request)
            self.asks(request.client)
        while self.coming and self.coming[0][0] <= self.now:
            _, _, request = heapq.heappop(self.coming)
            request.arrived = self.now / _NS
            self.waiting.add(request)
            self.hold = None
            self.policy.arrived(self.now / _NS, request)

    def fill(self) -> None:
        """Hands requests to the disk while it has room and the scheduler chooses."""
        while self.waiting and self.tags and self.hold is None:
            answer = self.policy.dispatch(self.now / _NS)
            if answer is None:
                return
            if isinstance(answer, (int, float)):
                # A later time may round to this nanosecond.
                until = max(round(answer * _NS), self.now + 1)
                if answer <= self.now / _NS:
                    raise CheckError(f"the scheduler waits until {answer} s, and it is {self.now / _NS} s; answer with a later time")
                self.hold = until
                return
            if answer not in self.waiting:
                raise CheckError(f"the scheduler serves {answer!r}, which does not wait; answer with a request that has arrived, once")
            self.waiting.remove(answer)
            answer.issued = self.now / _NS
            tag = self.tags.pop()
            self.inside[tag] = answer
            self.disk.submit(self.now, tag, answer.op, answer.lba, answer.sectors)
