"""XLA's flags for a program: the caller's, and those that compile it sooner."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import CompileOptions, Jaxpr, JaxprEqn, ShapedArray, config, subjaxprs
from corejax_xla_backend import _jaxlib

Flags = tuple[tuple[str, Any], ...]  # by name
# Elements of the largest array of a small program, and of one whose arrays are all of one size.
SMALL = 256
SMALL_ELEMENTWISE = 1024


def flags_for(jaxpr: Jaxpr, device: Any, options: CompileOptions) -> Flags:
    """Flags by name: the program's own, and before them the quick ones, where that is the setting, or for small ones.

    Fusions have emitters of their own, which pay on large arrays: a small program is as fast without them (0.99 to 1.04
    of the time, over sixty programs), and compiled in 0.55 to 0.8 of the time.
    """
    if _jaxlib.is_absent(device):
        return options.flags
    if config.disable_most_optimizations:
        flags = dict(_jaxlib.quick_flags(device.client))
    elif device.platform == "cpu" and is_small(jaxpr):
        flags = _jaxlib.PLAIN_FUSIONS
    else:
        return options.flags
    return tuple((flags | dict(options.flags)).items())


def is_small(jaxpr: Jaxpr) -> bool:
    """Whether no array of a program, or of a program in it, has many elements, or is of floats narrower than 16 bits.

    Those are rounded otherwise than by fusions, and not as they are here.
    """
    return all(_is_small(eqn) and all(map(is_small, _inner(eqn))) for eqn in jaxpr.eqns)


def _is_small(eqn: JaxprEqn) -> bool:
    sizes = {_size(v) for v in eqn.outvars} | {_size(atom) for atom in eqn.invars} - {1}
    return max(sizes, default=0) <= (SMALL_ELEMENTWISE if len(sizes) == 1 else SMALL)


def _size(atom: Any) -> float:
    aval = atom.aval
    if not isinstance(aval, ShapedArray):  # tokens
        return 0
    return math.inf if aval.dtype.itemsize == 1 and aval.dtype.name.startswith("float") else aval.size


def _inner(eqn: JaxprEqn) -> list[Jaxpr]:
    return [getattr(inner, "jaxpr", inner) for inner in subjaxprs(eqn.params)]
