"""XLA's flags for a program: the caller's, and those that compile it sooner."""

from __future__ import annotations

import math
from typing import Any

from corejax.extend import CompileOptions, Jaxpr, JaxprEqn, ShapedArray, Var, config, subjaxprs
from corejax_xla_backend import _jaxlib
from corejax_xla_backend.settings import EFFORTS

Flags = tuple[tuple[str, Any], ...]  # by name
# Elements of the largest array that operations of a small program take or make, and elementwise ones.
SMALL = 512
SMALL_ELEMENTWISE = 32768
# Operations one after the other in a program without emitters of fusions: XLA recurses along them, and 5,500 fill a
# stack of 8 MiB, which ends the process.
DEEP = 1000
_BYTES = 16  # of an artifact, at least, for each operation


def flags_for(jaxpr: Jaxpr, device: Any, options: CompileOptions) -> tuple[Flags, Flags]:
    """Flags by name: all of them, and those that were asked for.

    Asked for are the program's own, and before them what settings say of efforts. All are with the quick ones, where
    that is the setting, or with those for small programs: fusions have emitters of their own, which pay on large
    arrays, and a small program is as fast without them (0.97 to 1.04 of the time, over ninety programs) and compiled in
    0.55 to 0.8 of the time.
    """
    efforts = {name: value for name in EFFORTS if (value := getattr(config, name)) not in (0.0, "UNKNOWN")}
    asked = efforts | dict(options.flags)
    more: dict[str, Any] = {}
    if _jaxlib.is_absent(device):
        pass
    elif config.disable_most_optimizations:
        more = dict(_jaxlib.quick_flags(device.client))
        if depth_of(jaxpr) > DEEP:
            more = {name: value for name, value in more.items() if name not in _jaxlib.PLAIN_FUSIONS}
    elif device.platform == "cpu" and is_small(jaxpr) and depth_of(jaxpr) <= DEEP:
        more = _jaxlib.PLAIN_FUSIONS
    return tuple((more | asked).items()), tuple(asked.items())


def depth_of(jaxpr: Jaxpr) -> int:
    """How many operations follow one another at most, those of programs in it included."""
    found: int | None = jaxpr.memo.get("depth")  # of a program that is called more than once
    if found is not None:
        return found
    depths: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        inside = [depth_of(getattr(program, "jaxpr", program)) for program in subjaxprs(eqn.params)]
        if "exported" in eqn.params:  # an artifact, whose program is bytes
            inside.append(len(eqn.params["exported"].mlir_module_serialized) // _BYTES)
        before = [depths.get(v, 0) for v in eqn.invars if isinstance(v, Var)]
        depths.update(dict.fromkeys(eqn.outvars, 1 + max(inside, default=0) + max(before, default=0)))
    found = jaxpr.memo["depth"] = max(depths.values(), default=0)
    return found


def is_small(jaxpr: Jaxpr) -> bool:
    """Whether the arrays of a program, and of programs in it, have few elements, and none is of floats of eight bits.

    Those are rounded otherwise than by fusions, and not as they are here.
    """
    found: bool | None = jaxpr.memo.get("small")
    if found is None:
        found = jaxpr.memo["small"] = all(map(_is_small, jaxpr.eqns))
    return found


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
