"""Which jaxlib is this, and what can it do: the only place that asks.

jaxlib promises no API to anybody but the jax of the same release, so the range that this adapter was tried on
is checked before anything else, and everything that differs inside the range is one field of
:data:`FEATURES`.
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
    """jaxlib is missing, cannot be loaded, or is of a release that this plugin was not made for."""


@dataclass(frozen=True)
class Features:
    """What differs between the supported releases.

    Attributes:
        version: the release as integers, for example ``(0, 10, 2)``.
        handler_skips_checks: ``array_result_handler`` takes ``_skip_checks``. Without it (0.12) the handler
            calls ``ArrayImpl._check_and_rearrange``, a method that only importing jax adds to the class.
        copies_to_numpy: ``ArrayImpl._to_np_array_did_copy`` (0.12), which reads a buffer of any type without
            jax.
        plain_fusions: on CPUs, XLA still has the emitters from before fusions had their own (not in 0.12).
    """

    version: tuple[int, ...]
    handler_skips_checks: bool
    copies_to_numpy: bool
    plain_fusions: bool


def parse_version(text: str) -> tuple[int, ...]:
    """The leading release numbers of a version string; ``"0.12.0.dev3"`` gives ``(0, 12, 0)``."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    if match is None:
        raise JaxlibError(f"jaxlib's version {text!r} does not start with a release number.")
    return tuple(int(part) for part in match.group().split("."))


def check_version(text: str) -> tuple[int, ...]:
    """The release numbers of a supported jaxlib.

    Raises:
        JaxlibError: outside ``>=0.10.2,<0.13``, naming the version found and how to get another.
    """
    version = parse_version(text)
    if version >= MINIMUM and version[: len(BELOW)] < BELOW:
        return version
    raise JaxlibError(
        f"corejax-xla-backend works with jaxlib >=0.10.2,<0.13, but jaxlib {text} is installed. "
        f"Its API is private and changes between releases. Install one that fits: {INSTALL_ADVICE}"
    )


def _load() -> Any:
    # The C++ log level is read once, when the shared library is loaded; its default prints device discovery.
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
    """The C++ signature that nanobind keeps with a bound function, or ``""``."""
    return str(getattr(function, "__nb_signature__", "")) + str(getattr(function, "__doc__", ""))


FEATURES = Features(
    version=_version,
    handler_skips_checks="_skip_checks" in _signature(core.array_result_handler),
    copies_to_numpy=hasattr(core.ArrayImpl, "_to_np_array_did_copy"),
    plain_fusions=_version < (0, 11),
)


class _Collector(itertools.starmap):  # type: ignore[type-arg]
    # Python references that C++ threads drop without the GIL wait in a queue; nothing else empties it. Python drops
    # what a callback of its collector raises, and would raise an interrupt there if the callback were a function.
    # This one is C all through: the attribute of either phase is the next call.
    start = stop = property(next)


on_collection: Any = functools.partial(getattr, _Collector(core.collect_garbage, itertools.repeat(())))
gc.callbacks.append(on_collection)
