"""Runs `headtime` on a scenario in TOML. For the programs beside this file."""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile


def headtime(*words):
    """Output of a command of the binary HEADTIME. Ends the program if the command fails."""
    done = subprocess.run([os.environ.get("HEADTIME", "target/release/headtime"), *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


@contextlib.contextmanager
def scenario_file(text):
    """Name of a temporary file with a scenario."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        yield file.name


def runs(text):
    """The results of a scenario, one for each run."""
    with scenario_file(text) as name:
        return json.loads(headtime("sim", "run", name, "--format", "json"))["runs"]


def drawn(usage, count):
    """Arguments `[SEED] [COUNT]` of a program: a function that draws from a list, and how many scenarios to draw."""
    words = sys.argv[1:]
    if len(words) > 2 or not all(word.isdigit() for word in words) or words[1:] == ["0"]:
        sys.exit(usage)
    seed, count = (int(word) for word in words + ["1", str(count)][len(words) :])
    return random.Random(seed).choice, count
