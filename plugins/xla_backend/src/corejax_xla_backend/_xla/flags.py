"""XLA's flags for a program: the caller's, and those that compile it sooner."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import Jaxpr, ShapedArray, Var, config
from corejax.extend.devices import CompileOptions
from corejax.extend.programs import subjaxprs
from corejax_xla_backend import _jaxlib
from corejax_xla_backend.settings import EFFORTS

M = TypeVar("M")
Flags = tuple[tuple[str, Any], ...]  # by name
# Elements of the largest array of a small program: loops over so many are written out, whatever they read and write.
SMALL = 64
SMALL_KERNEL = 32768  # of one whose only loop is over elements
SINGLE = 2  # operations of one whose arrays may be of any size: a comparison and a choice, say
# Kernels like another one of the program: with emitters equal ones are compiled once, layers of a network say.
REPEATS = 6
# Operations one after the other in a program without emitters of fusions: XLA recurses along them, and 5,500 fill a
# stack of 8 MiB, which ends the process.
DEEP = 1000
_BYTES = 16  # of an artifact, at least, for each operation


def flags_for(jaxpr: Jaxpr, text: str, device: Any, options: CompileOptions) -> tuple[Flags, Flags]:
    """Flags by name: all of them, and those that were asked for.

    Asked for are the program's own, and before them what settings say of efforts. All are with the quick ones, where
    that is the setting, or with those for small programs: fusions have emitters of their own, without which small
    programs are compiled in 0.55 to 0.8 of the time.
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
    elif device.platform == "cpu" and is_plain(jaxpr, text) and depth_of(jaxpr) <= DEEP:
        more = _jaxlib.PLAIN_FUSIONS
    return tuple((more | asked).items()), tuple(asked.items())


def _kept(measure: Callable[[Jaxpr], M]) -> Callable[[Jaxpr], M]:
    """Keep what a function finds of a program with the program, which may be called more than once."""
    key = measure.__name__

    @functools.wraps(measure)
    def kept(jaxpr: Jaxpr) -> M:
        if key not in jaxpr.memo:
            jaxpr.memo[key] = measure(jaxpr)
        return jaxpr.memo[key]  # type: ignore[no-any-return]

    return kept


@_kept
def depth_of(jaxpr: Jaxpr) -> int:
    """How many operations follow one another at most, those of programs in it included."""
    depths: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        inside = [depth_of(getattr(program, "jaxpr", program)) for program in subjaxprs(eqn.params)]
        if "exported" in eqn.params:  # an artifact, whose program is bytes
            inside.append(len(eqn.params["exported"].mlir_module_serialized) // _BYTES)
        before = [depths.get(v, 0) for v in eqn.invars if isinstance(v, Var)]
        depths.update(dict.fromkeys(eqn.outvars, 1 + max(inside, default=0) + max(before, default=0)))
    return max(depths.values(), default=0)


# Operations that XLA's CPU compiler does not compute twice: a result that is read twice ends a kernel.
_ENDS = re.compile(r'(%\d+) = "stablehlo\.(?:atan2|cbrt|divide|log|log_plus_one|power|remainder|rsqrt|sqrt|tan)"')
_OPERATIONS = re.compile(r'"stablehlo\.(?!constant|broadcast_in_dim)')
_NAMES = re.compile(r"%\d+\b")
# What has kernels write where they read; and what becomes several operations of those.
_INNER = frozenset({"elementwise", "structural", "collective"})
_IN_PLACE = ("stablehlo.while", "tf.aliasing_output", "jax.buffer_donor", "chlo.")


def is_plain(jaxpr: Jaxpr, text: str) -> bool:
    """Whether a program runs as fast without emitters of fusions, and is compiled sooner.

    A single operation, `sqrt` or `tanh` of a million numbers, is no fusion, and runs in a third to three quarters of
    the time without them.

    Kernels that write to the memory that they read, number after number, are then slower by up to fourteen times, for
    LLVM cannot tell that they may be computed as vectors: carries of loops, donated arrays, intermediate results that
    the next kernel takes. Left are arrays of a few elements, and programs of one kernel over elements. None has floats
    of eight bits: those are rounded otherwise than by fusions, and not as they are here.
    """
    largest, elementwise = extent_of(jaxpr)
    if largest <= SMALL:
        return repeats_of(jaxpr) < REPEATS
    if largest == math.inf or not elementwise or any(word in text for word in _IN_PLACE):
        return False
    if largest > SMALL_KERNEL and (SMALL_KERNEL < 0 or len(_OPERATIONS.findall(text)) > SINGLE):
        return False
    named = Counter(_NAMES.findall(text))
    return all(named[name] <= 2 for name in _ENDS.findall(text))  # where it is made, and read


@_kept
def extent_of(jaxpr: Jaxpr) -> tuple[float, bool]:
    """Elements of the largest array of a program, and of programs in it; whether all operations are elementwise."""
    largest, elementwise = 0.0, True
    for eqn in jaxpr.eqns:
        sizes = [_size(atom) for atom in eqn.invars]
        inner = [getattr(program, "jaxpr", program) for program in subjaxprs(eqn.params)]
        extents = [extent_of(program) for program in inner]
        called = len(inner) == 1 and [_size(v) for v in inner[0].invars] == sizes and extents[0][1]
        elementwise = elementwise and (called or "elementwise" in eqn.primitive.tags)
        unknown = math.inf if "exported" in eqn.params else 0  # an artifact, whose program is bytes
        # Where a program is each device's own, its types are those of a part.
        own = [] if "binds_axes" in eqn.primitive.tags else [*sizes, *map(_size, eqn.outvars)]
        largest = max([largest, unknown, *own, *[size for size, _ in extents]])
    return largest, elementwise


@_kept
def repeats_of(jaxpr: Jaxpr) -> int:
    """How many kernels of a program, and of programs in it, are like one before: of one operation on the same types.

    A kernel ends in a result, and with an operation that is neither elementwise nor one of indices or between devices.
    """
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    ends = [eqn for eqn in jaxpr.eqns if _INNER.isdisjoint(eqn.primitive.tags)]
    ends += [made[v] for v in jaxpr.outvars if v in made and not _INNER.isdisjoint(made[v].primitive.tags)]
    kinds = {(eqn.primitive, *[atom.aval for atom in eqn.invars]) for eqn in ends}
    inner = [getattr(program, "jaxpr", program) for eqn in jaxpr.eqns for program in subjaxprs(eqn.params)]
    return len(ends) - len(kinds) + sum(map(repeats_of, inner))


def _size(atom: Any) -> float:
    aval = atom.aval
    if not isinstance(aval, ShapedArray):  # tokens
        return 0
    return math.inf if aval.dtype.itemsize == 1 and aval.dtype.name.startswith("float") else aval.size
