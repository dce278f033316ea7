"""Checks of jaxlib's version and features; the only module that makes them.

jaxlib's API is stable only for the jax of the same release. So the version is first checked against the range
that this adapter was tested on, and each difference within the range is a field of :data:`FEATURES`.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import re
from dataclasses import dataclass
from typing import Any

from ._interrupts import uninterrupted

MINIMUM = (0, 10, 2)
BELOW = (0, 13)
INSTALL_ADVICE = "pip install 'jaxlib>=0.10.2,<0.13'"


class JaxlibError(ImportError):
    """Raised if jaxlib is missing, cannot be loaded, or is of an unsupported release."""


@dataclass(frozen=True)
class Features:
    """The differences between the supported releases of jaxlib.

    Attributes:
        version: the release as integers, for example ``(0, 10, 2)``.
        handler_skips_checks: ``array_result_handler`` takes ``_skip_checks``. Without it (0.12) the handler
            calls ``ArrayImpl._check_and_rearrange``, a method that only importing jax adds to the class.
        copies_to_numpy: ``ArrayImpl._to_np_array_did_copy`` exists (0.12); it reads a buffer of any dtype without
            jax.
        plain_fusions: XLA's CPU compiler still has the emitters that preceded the fusion emitters (not in 0.12).
    """

    version: tuple[int, ...]
    handler_skips_checks: bool
    copies_to_numpy: bool
    plain_fusions: bool


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading release numbers of a version string; ``"0.12.0.dev3"`` gives ``(0, 12, 0)``."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    if match is None:
        raise JaxlibError(f"jaxlib's version {text!r} does not start with a release number.")
    return tuple(int(part) for part in match.group().split("."))


def check_version(text: str) -> tuple[int, ...]:
    """Return the release numbers of a jaxlib version.

    Raises:
        JaxlibError: the version is outside ``>=0.10.2,<0.13``; the message names it and how to install another.
    """
    version = parse_version(text)
    if version >= MINIMUM and version[: len(BELOW)] < BELOW:
        return version
    raise JaxlibError(
        f"corejax-xla-backend works with jaxlib >=0.10.2,<0.13, but jaxlib {text} is installed. "
        f"Its API is private and changes between releases. Install one that fits: {INSTALL_ADVICE}"
    )


def _load() -> Any:
    # C++ reads the log level once, when the shared library is loaded; the default level logs device discovery.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    try:
        import jaxlib.version
    except ImportError as error:
        raise JaxlibError(
            f"corejax-xla-backend needs jaxlib, which cannot be imported ({error}). Install it: {INSTALL_ADVICE}"
        ) from error
    version = check_version(jaxlib.version.__version__)
    try:
        from jaxlib import cpu_feature_guard

        # A wheel built for newer instructions would otherwise die with SIGILL.
        cpu_feature_guard.check_cpu_features()
        with uninterrupted():
            from jaxlib import xla_client
    except ImportError as error:
        raise JaxlibError(f"jaxlib {jaxlib.version.__version__} is installed but does not load: {error}") from error
    return xla_client, version


xla_client, _version = _load()
core = xla_client._xla  # the C++ extension module, jaxlib._jax


def _signature(function: object) -> str:
    """Return the C++ signature that nanobind stores on a bound function, or ``""``."""
    return str(getattr(function, "__nb_signature__", "")) + str(getattr(function, "__doc__", ""))


FEATURES = Features(
    version=_version,
    handler_skips_checks="_skip_checks" in _signature(core.array_result_handler),
    copies_to_numpy=hasattr(core.ArrayImpl, "_to_np_array_did_copy"),
    plain_fusions=_version < (0, 11),
)


class _Collector(itertools.starmap):  # type: ignore[type-arg]  # it is not generic at run time
    # Empties jaxlib's queue of Python references that C++ threads dropped without the GIL; nothing else empties it.
    # It runs as a callback of Python's garbage collector. Python discards exceptions that such a callback raises, so an
    # interrupt that arrives while a Python function runs there would be lost. This callback runs no Python code:
    # `gc` passes the phase, "start" or "stop", and getting that attribute calls `collect_garbage` by `next`.
    start = stop = property(next)


on_collection: Any = functools.partial(getattr, _Collector(core.collect_garbage, itertools.repeat(())))
gc.callbacks.append(on_collection)
