"""Settings as flags of the command line, for programs whose flags are absl's."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any

PREFIX = "corejax_"


def define(settings: Mapping[str, bool], values: Mapping[str, Any], update: Callable[[str, Any], None]) -> None:
    """Define a flag `--corejax_<setting>` for each setting, and have absl set what is given once it has parsed them.

    Args:
        settings: their names, and whether each is on or off (so that `--corejax_x` and `--nocorejax_x` are enough).
        values: of the settings, for absl's help.
        update: sets one.

    Raises:
        ImportError: absl-py is not installed.
    """
    from absl import app, flags

    for name, on_or_off in settings.items():
        if PREFIX + name in flags.FLAGS:
            continue
        text = f"corejax's setting {name}"
        if on_or_off:
            flags.DEFINE_bool(PREFIX + name, values[name], text)
        else:
            flags.DEFINE_string(PREFIX + name, None if values[name] is None else str(values[name]), text)
    app.call_after_init(lambda: apply(settings, update))


def apply(settings: Mapping[str, bool], update: Callable[[str, Any], None]) -> None:
    """Set those settings whose flags are on the command line."""
    from absl import flags

    for name in settings:
        flag = flags.FLAGS[PREFIX + name]
        if flag.present:
            update(name, flag.value)


def parse(settings: Mapping[str, bool], update: Callable[[str, Any], None]) -> None:
    """Read from the command line what begins as the flags do, up to a `--`, and leave the rest to others."""
    from absl import flags

    given = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
    ours = [word for word in given if word.lstrip("-").removeprefix("no").startswith(PREFIX)]
    flags.FLAGS([sys.argv[0], *ours], known_only=True)
    apply(settings, update)
