"""Settings as flags of the command line, for programs whose flags are absl's."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from typing import Any

PREFIX = "corejax_"


def define(config: Any) -> None:
    """Define a flag `--corejax_<setting>` for each setting, and have absl set what is given once it has parsed them.

    Raises:
        ImportError: absl-py is not installed.
    """
    from absl import app, flags

    config.load_plugins()
    for name in (*config.values(), "enable_x64", "enable_checks", "platforms"):
        if PREFIX + name in flags.FLAGS:
            continue
        value, text = getattr(config, name), f"corejax's setting {name}"
        if isinstance(value, bool) and name != "rule_overrides":  # which may be names of plugins
            flags.DEFINE_bool(PREFIX + name, value, text)
        else:
            flags.DEFINE_string(PREFIX + name, None if value is None else str(value), text)
    app.call_after_init(partial(_apply, config))


def parse(config: Any) -> None:
    """Read from the command line what begins as the flags do, up to a `--`, and leave the rest to others."""
    from absl import flags

    define(config)
    given = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
    ours = [word for word in given if word.lstrip("-").removeprefix("no").startswith(PREFIX)]
    flags.FLAGS([sys.argv[0], *ours], known_only=True)
    _apply(config)


def _apply(config: Any) -> None:
    """Set those settings whose flags are on the command line."""
    from absl import flags

    for name in flags.FLAGS:
        if name.startswith(PREFIX) and flags.FLAGS[name].present:
            config.update(name.removeprefix(PREFIX), flags.FLAGS[name].value)
