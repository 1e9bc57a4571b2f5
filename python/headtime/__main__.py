"""`python3 -m headtime sweep FILE --on ray --out DIRECTORY`"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from . import Error, FileError, UsageError, sweep


def setting(text: str) -> tuple[str, Any]:
    """KEY=VALUE. A value that is no number, flag or list is a text."""
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: write KEY=VALUE, as in engine.depth=4")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m headtime", description="Sweeps on several machines")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    of_sweep = commands.add_parser("sweep", help="run a scenario for many values of its keys")
    of_sweep.add_argument("scenario", metavar="FILE")
    of_sweep.add_argument("--on", choices=["local", "ray", "slurm"], default="local", help="where the runs are made")
    of_sweep.add_argument("--out", metavar="DIRECTORY", required=True, help="results, and runs that are done")
    of_sweep.add_argument("--vary", type=setting, metavar="KEY=LIST", action="append", default=[], help="vary a key too")
    of_sweep.add_argument("--set", type=setting, metavar="KEY=VALUE", action="append", default=[], help="set a key")
    of_sweep.add_argument("--workers", type=int, metavar="N", help="tasks at a time")
    of_sweep.add_argument("--batch", type=int, metavar="N", help="runs of a task")
    of_sweep.add_argument("--seed", type=int, metavar="N")
    of_sweep.add_argument("--max-runs", type=int, metavar="N", default=20_000)
    of_sweep.add_argument("--restart", action="store_true", help="drop the runs that are done")
    args = parser.parse_args()
    try:
        swept = sweep(
            args.scenario, vary=dict(args.vary), settings=dict(args.set), on=args.on, out=args.out, workers=args.workers,
            batch=args.batch, seed=args.seed, max_runs=args.max_runs, restart=args.restart,
        )
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 4 if isinstance(error, FileError) else 3
    except KeyboardInterrupt as error:
        print(f"error: {error}", file=sys.stderr)
        return 5
    print(swept, end="")
    return 1 if swept.failed else 0


if __name__ == "__main__":
    sys.exit(main())
