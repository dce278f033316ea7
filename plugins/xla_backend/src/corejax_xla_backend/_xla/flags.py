"""XLA's flags for a program: the caller's, and those that compile it sooner."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import CompileOptions, Jaxpr, JaxprEqn, ShapedArray, config, subjaxprs
from corejax_xla_backend import _jaxlib

Flags = tuple[tuple[str, Any], ...]  # by name
# Elements of the largest array that operations of a small program take or make, and elementwise ones.
SMALL = 512
SMALL_ELEMENTWISE = 32768


def flags_for(jaxpr: Jaxpr, device: Any, options: CompileOptions) -> Flags:
    """Flags by name: the program's own, and before them the quick ones, where that is the setting, or for small ones.

    Fusions have emitters of their own, which pay on large arrays: a small program is as fast without them (0.97 to 1.04
    of the time, over ninety programs), and compiled in 0.55 to 0.8 of the time.
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
    """Whether the arrays of a program, and of programs in it, have few elements, and none is of floats of eight bits.

    Those are rounded otherwise than by fusions, and not as they are here.
    """
    return all(map(_is_small, jaxpr.eqns))


def _is_small(eqn: JaxprEqn) -> bool:
    sizes = [_size(atom) for atom in eqn.invars]
    inner = [getattr(program, "jaxpr", program) for program in subjaxprs(eqn.params)]
    called = len(inner) == 1 and [_size(v) for v in inner[0].invars] == sizes
    limit = SMALL_ELEMENTWISE if called or "elementwise" in eqn.primitive.tags else SMALL
    return max([*sizes, *map(_size, eqn.outvars)], default=0) <= limit and all(map(is_small, inner))


def _size(atom: Any) -> float:
    aval = atom.aval
    if not isinstance(aval, ShapedArray):  # tokens
        return 0
    return math.inf if aval.dtype.itemsize == 1 and aval.dtype.name.startswith("float") else aval.size
