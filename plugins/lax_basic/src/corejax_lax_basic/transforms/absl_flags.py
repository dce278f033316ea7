"""Settings as flags of absl: `--corejax_debug_nans`, `--corejax_backend=cpu`."""

from __future__ import annotations

import itertools
import sys

from corejax.extend import config

_PREFIX = "corejax_"  # prefix of flags on the command line


def define_absl_flags() -> None:
    """Define a flag for each setting, and let `absl.app.run` read them: `corejax.config.config_with_absl()`.

    Raises:
        ImportError: absl-py is not installed.
    """
    from absl import app, flags  # an optional dependency

    for name in (*config.values(), "enable_x64", "enable_checks", "platforms"):
        if _PREFIX + name in flags.FLAGS:
            continue
        value, text = getattr(config, name), f"corejax's setting {name}"
        if isinstance(value, bool) and name != "rule_overrides":  # this one may be names of plugins
            flags.DEFINE_bool(_PREFIX + name, value, text)
        else:
            flags.DEFINE_string(_PREFIX + name, None if value is None else str(value), text)
    app.call_after_init(_read_flags)


def parse_absl_flags() -> None:
    """Read the flags of settings now, for programs that do not call `absl.app.run`; ignore other flags.

    Raises:
        ImportError: absl-py is not installed.
    """
    from absl import flags

    define_absl_flags()
    words = itertools.takewhile(lambda word: word != "--", sys.argv[1:])
    own = [word for word in words if word.lstrip("-").removeprefix("no").startswith(_PREFIX)]
    flags.FLAGS([sys.argv[0], *own], known_only=True)
    _read_flags()


def _read_flags() -> None:
    """Set the settings with a flag on the command line."""
    from absl import flags

    for name in flags.FLAGS:
        if name.startswith(_PREFIX) and flags.FLAGS[name].present:
            config.update(name.removeprefix(_PREFIX), flags.FLAGS[name].value)
