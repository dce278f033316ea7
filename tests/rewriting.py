"""Of several processes each rewrites the assertions of some of the files, and finds those of the others done.

They import the same files at the same time: in a fresh clone each of them would rewrite each file, in half of the time
that collecting takes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_a_share(config: pytest.Config) -> None:
    """Before files are collected; only what pytest would do later by itself."""
    process = getattr(config, "workerinput", None)
    if process is None or sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    state = config.stash.get(rewrite.assertstate_key, None)
    if state is None:
        return
    number, count = int(process["workerid"].removeprefix("gw")), process["workercount"]
    for file in _files(config)[number::count]:
        folder = rewrite.get_cache_dir(file)
        done = folder / (file.name[:-3] + rewrite.PYC_TAIL)
        if not done.exists() and rewrite.try_makedirs(folder):
            stat, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, stat, done)


def _files(config: pytest.Config) -> list[Path]:
    found: dict[Path, None] = {}
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        found |= dict.fromkeys(sorted(path.rglob("test_*.py")) if path.is_dir() else [path] if path.is_file() else [])
    return list(found)
