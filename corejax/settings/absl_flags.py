"""Settings as flags of the command line, for programs whose flags are absl's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from typing import Any

PREFIX = "corejax_"


def define(config: Any, settings: Mapping[str, bool]) -> None:
    """Define a flag `--corejax_<setting>` for each setting, and have absl set what is given once it has parsed them.

    Args:
        config: the settings.
        settings: their names, and whether each is on or off (so that `--corejax_x` and `--nocorejax_x` are enough).

    Raises:
        ImportError: absl-py is not installed.
    """
    from absl import app, flags

    for name, on_or_off in settings.items():
        if PREFIX + name in flags.FLAGS:
            continue
        value, text = getattr(config, name), f"corejax's setting {name}"
        if on_or_off:
            flags.DEFINE_bool(PREFIX + name, value, text)
        else:
            flags.DEFINE_string(PREFIX + name, None if value is None else str(value), text)
    app.call_after_init(lambda: _apply(config, settings))


def parse(config: Any, settings: Mapping[str, bool]) -> None:
    """Read from the command line what begins as the flags do, up to a `--`, and leave the rest to others."""
    from absl import flags

    define(config, settings)
    given = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
    ours = [word for word in given if word.lstrip("-").removeprefix("no").startswith(PREFIX)]
    flags.FLAGS([sys.argv[0], *ours], known_only=True)
    _apply(config, settings)


def _apply(config: Any, settings: Mapping[str, bool]) -> None:
    """Set those settings whose flags are on the command line."""
    from absl import flags

    for name in settings:
        flag = flags.FLAGS[PREFIX + name]
        if flag.present:
            config.update(name, flag.value)
