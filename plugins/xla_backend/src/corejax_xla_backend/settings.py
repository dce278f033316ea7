"""The settings of this plugin, and JAX's context managers for some of them."""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from corejax.extend import backends, config
from corejax.extend.messages import Restoring


def _parser(name: str, expected: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a parser of a setting's values, which raises ValueError if `convert` fails.

    `expected` continues the setting's name in the message.
    """

    def parse(value: Any) -> Any:
        try:
            return convert(value)
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{name}{expected}, got {value!r}") from None

    return parse


_WORDS = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def _flag(name: str) -> Callable[[Any], bool]:
    return _parser(name, " is on or off", lambda value: _WORDS[str(value).strip().lower()])


def _device(value: Any) -> Any:
    """Return a device, or the default device of a named platform; None for the first device of all."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        backend, platform = backends.find(value)
        return backend.default_device(platform)
    try:
        backends.of_device(value)
    except TypeError:
        backends.find()  # imports the backend, which is needed to recognise its devices
        backends.of_device(value)
    return value


def _num_cpu_devices(value: Any) -> int | None:
    """Return the number of devices that the CPU is divided into; None for XLA's choice. The first use fixes it."""
    if value in (None, "", "None", -1, "-1"):
        return None
    count = operator.index(int(value) if isinstance(value, str) else value)
    if count < 1:
        raise ValueError(f"num_cpu_devices must be at least 1, got {value!r}")
    adapter = sys.modules.get("corejax_xla_backend._jaxlib")
    if adapter is not None:
        adapter.check_cpu_devices(count)
    return count


def _directory(value: Any) -> str:
    """Return a directory as text: empty for no cache, and "auto" for the user's cache directory."""
    if value is None:
        return ""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"compilation_cache_dir must be a path, 'auto', or empty for no cache; got {value!r}")
    return os.fspath(value).strip()


def _number(name: str, least: float, kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return _parser(name, f" is a number not below {least}", lambda value: _between(kind, value, least, math.inf))


def _between(kind: Callable[[Any], Any], value: Any, least: float, most: float) -> Any:
    number = kind(value)
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError
    return number


# Options of the compiler that are settings: two numbers and two words.
EFFORTS = ("exec_time_optimization_effort", "memory_fitting_effort", "memory_fitting_level", "optimization_level")


def _effort(name: str) -> Callable[[Any], float]:
    return _parser(name, " is a number from -1 to 1", lambda value: _between(float, value, -1, 1))


_DEGREES = {degree: degree for degree in ("UNKNOWN", "O0", "O1", "O2", "O3")}


def _degree(name: str) -> Callable[[Any], str]:
    return _parser(name, " is UNKNOWN, O0, O1, O2 or O3", _DEGREES.__getitem__)


DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
GUARD_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


_LEVELS = {None: None, "": None} | {level: level for level in GUARD_LEVELS}


def _level(name: str) -> Callable[[Any], str | None]:
    return _parser(name, f": the levels are {', '.join(GUARD_LEVELS)}", _LEVELS.__getitem__)


TIERS = ("compiled", "auto")

# name -> (default, parser of values)
SETTINGS: Mapping[str, tuple[Any, Callable[[Any], Any]]] = {
    "compilation_cache": (True, _flag("compilation_cache")),
    "compilation_cache_dir": ("auto", _directory),
    "compilation_cache_max_size": (1 << 30, _number("compilation_cache_max_size", -1, int)),
    "cpu_enable_async_dispatch": (False, _flag("cpu_enable_async_dispatch")),
    "default_device": (None, _device),
    "disable_most_optimizations": (False, _flag("disable_most_optimizations")),
    **{name: (0.0, _effort(name)) for name in EFFORTS[:2]},
    **{name: ("UNKNOWN", _degree(name)) for name in EFFORTS[2:]},
    "compilation_progress": (True, _flag("compilation_progress")),
    "explain_cache_misses": (False, _flag("explain_cache_misses")),
    "jit_tier": (
        TIERS[0],
        _parser("jit_tier", " is 'compiled' or 'auto'", dict(zip(TIERS, TIERS, strict=True)).__getitem__),
    ),
    "kept_programs": (16, _number("kept_programs", 0, int)),
    "log_compiles": (False, _flag("log_compiles")),
    "num_cpu_devices": (None, _num_cpu_devices),
    "persistent_cache_min_compile_time_secs": (0.1, _number("persistent_cache_min_compile_time_secs", 0, float)),
    "persistent_cache_min_entry_size_bytes": (0, _number("persistent_cache_min_entry_size_bytes", -1, int)),
    "raise_persistent_cache_errors": (False, _flag("raise_persistent_cache_errors")),
    **{name: (None, _level(name)) for name in ("transfer_guard", *(f"transfer_guard_{x}" for x in sorted(DIRECTIONS)))},
}


def default_device(new_val: Any) -> Restoring:
    """Set the device for arrays and programs that are not bound to a device: a context manager and decorator.

    Args:
        new_val: one of `corejax.devices()`, the name of a platform, or None for the first device.
    """
    return config.override(default_device=new_val)


def explain_cache_misses(new_val: bool = True) -> Restoring:
    """Log why jitted functions are traced again (logger `corejax`): a context manager and decorator."""
    return config.override(explain_cache_misses=new_val)


def log_compiles(new_val: bool = True) -> Restoring:
    """Log traces and compilations with their times (logger `corejax`): a context manager and decorator."""
    return config.override(log_compiles=new_val)
