"""XLA's flags for a program: the flags that the caller requests, and flags that shorten its compilation.

XLA's CPU compiler has special emitters for fusions, which make large programs faster and compilation slower. A small
program runs as fast without them and compiles in 0.55 to 0.8 of the time. So the program's size, its loops and its
repeated kernels decide (`is_plain`). A very deep program keeps the emitters, because XLA recurses without them.

XLA compiles each product of a matrix and a vector as a kernel of its own, even if a program has a hundred equal ones.
These kernels are as fast with fewer LLVM passes, so that programs that mostly consist of them compile with
`FEWER_PASSES`. Without emitters, the same passes vectorise the other kernels, so such programs keep all passes.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from corejax.extend import ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray, Var, config
from corejax.extend.devices import CompileOptions
from corejax.extend.programs import subjaxprs
from corejax_xla_backend import _jaxlib
from corejax_xla_backend.settings import EFFORTS

M = TypeVar("M")
Flags = tuple[tuple[str, Any], ...]  # pairs of a name and a value
# Elements of the largest array of a small program, of four bytes each: loops of this length are unrolled, whatever they
# read and write.
SMALL = 100
SMALL_KERNEL = 32768  # elements of the largest array of a program that is one elementwise loop
SINGLE = 2  # operations of a program that may have arrays of any size: a comparison and a choice, say
# The share of a program's kernels that repeat others: with emitters, equal kernels (such as layers of a network) are
# compiled once, and without them a kernel compiles in less than half of the time. The times are equal at about 0.85.
REPEATED = 0.85
# The longest chain of operations in a program without emitters: XLA recurses along the chain, and 5,500 operations fill
# a stack of 8 MiB, which ends the process.
DEEP = 1000
# The least share of products with a vector among the kernels of a program that is compiled with fewer passes. Such
# programs compile in 0.86 to 0.95 of the time. Some other kernels run up to twice as long with fewer passes.
PRODUCTS = 0.5
FEWER_PASSES: dict[str, Any] = {"xla_backend_optimization_level": 1}
_BYTES = 16  # the least number of bytes that an operation takes in an exported artifact


def flags_for(jaxpr: Jaxpr, text: str, device: Any, options: CompileOptions) -> tuple[Flags, Flags]:
    """Return two sets of flags: all flags, and only the requested ones.

    The requested flags are the compiler options of the program, which override the settings of efforts. All flags
    include those that shorten compilation: of the setting `disable_most_optimizations`, or of a program on CPUs that
    runs as fast with them.
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
    elif device.platform == "cpu":
        if is_plain(jaxpr, text) and depth_of(jaxpr) <= DEEP:
            more |= _jaxlib.PLAIN_FUSIONS
        elif multiplies_vectors(jaxpr):
            more |= FEWER_PASSES
    return tuple((more | asked).items()), tuple(asked.items())


def _inner_programs(eqn: JaxprEqn) -> list[Jaxpr]:
    """Return the programs among an equation's parameters, without their constants."""
    return [program.jaxpr if isinstance(program, ClosedJaxpr) else program for program in subjaxprs(eqn.params)]


def _memoized(measure: Callable[[Jaxpr], M]) -> Callable[[Jaxpr], M]:
    """Memoize a function of a program with the program, which other programs may contain several times."""
    key = measure.__name__

    @functools.wraps(measure)
    def memoized(jaxpr: Jaxpr) -> M:
        if key not in jaxpr.memo:
            jaxpr.memo[key] = measure(jaxpr)
        return jaxpr.memo[key]  # type: ignore[no-any-return]  # memos hold any values

    return memoized


@_memoized
def depth_of(jaxpr: Jaxpr) -> int:
    """Return the length of the longest chain of operations, including those of inner programs."""
    depths: dict[Any, int] = {}
    for eqn in jaxpr.eqns:
        inside = [depth_of(program) for program in _inner_programs(eqn)]
        if "exported" in eqn.params:  # the program of an exported artifact is bytes: estimate its operations
            inside.append(len(eqn.params["exported"].mlir_module_serialized) // _BYTES)
        before = [depths.get(v, 0) for v in eqn.invars if isinstance(v, Var)]
        depths.update(dict.fromkeys(eqn.outvars, 1 + max(inside, default=0) + max(before, default=0)))
    return max(depths.values(), default=0)


# Operations that XLA's CPU compiler never computes twice, so that a kernel ends at a result with two readers.
_ENDS = re.compile(r'(%\d+) = "stablehlo\.(?:atan2|cbrt|divide|log|log_plus_one|power|remainder|rsqrt|sqrt|tan)"')
_OPERATIONS = re.compile(r'"stablehlo\.(?!constant|broadcast_in_dim)')
_NAMES = re.compile(r"%\d+\b")
# Tags of operations that may be inside a kernel.
_INNER = frozenset({"elementwise", "structural", "collective"})
# Words for kernels that write to memory that they read, for values that are stored between kernels, and for operations
# that expand to several others.
_IN_PLACE = ("stablehlo.while", "tf.aliasing_output", "jax.buffer_donor", 'inlineable = "false"', "chlo.")


def is_plain(jaxpr: Jaxpr, text: str) -> bool:
    """Return whether a program runs as fast without emitters of fusions, and so should be compiled without them.

    A single operation, such as `sqrt` or `tanh` of a million numbers, is no fusion, and runs in a third to three
    quarters of the time without emitters.

    Without emitters, LLVM cannot vectorise kernels that write to memory that they read: carries of loops, donated
    arrays, and intermediate results between kernels. Such kernels are slower by up to fourteen times. So the result is
    True only for programs on arrays of a few elements, and for programs of one elementwise kernel. Programs with 8-bit
    floats keep the emitters, which round them as the eager rules do.
    """
    largest, elementwise = extent_of(jaxpr)
    if largest <= SMALL:
        kernels, repeats = kernels_of(jaxpr)
        return repeats <= REPEATED * kernels
    if largest == math.inf or not elementwise or any(word in text for word in _IN_PLACE):
        return False
    if largest > SMALL_KERNEL and (SMALL_KERNEL < 0 or len(_OPERATIONS.findall(text)) > SINGLE):
        return False
    uses = Counter(_NAMES.findall(text))
    return all(uses[name] <= 2 for name in _ENDS.findall(text))  # one definition and one reader


@_memoized
def extent_of(jaxpr: Jaxpr) -> tuple[float, bool]:
    """Return the size of the largest array of a program and its inner ones, and whether all is elementwise."""
    largest, elementwise = 0.0, True
    for eqn in jaxpr.eqns:
        sizes = [_size(atom) for atom in eqn.invars]
        inner = _inner_programs(eqn)
        extents = [extent_of(program) for program in inner]
        called = len(inner) == 1 and [_size(v) for v in inner[0].invars] == sizes and extents[0][1]
        elementwise = elementwise and (called or "elementwise" in eqn.primitive.tags)
        unknown = math.inf if "exported" in eqn.params else 0  # the program of an exported artifact is bytes
        # Only inner types count: a loop takes slices of its operands, and a device runs such a program on its part.
        own = [] if inner else [*sizes, *map(_size, eqn.outvars)]
        largest = max([largest, unknown, *own, *[size for size, _ in extents]])
    return largest, elementwise


@_memoized
def kernels_of(jaxpr: Jaxpr) -> tuple[int, int]:
    """Return the number of kernels of a program and its inner ones, and how many repeat an earlier one of the program.

    A kernel repeats another if its last operation is the same, on the same types. A kernel ends at a result of the
    program, and at each operation that is not elementwise, structural or collective.
    """
    producers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    ends = [eqn for eqn in jaxpr.eqns if _INNER.isdisjoint(eqn.primitive.tags) and not _inner_programs(eqn)]
    results = [producers[v] for v in jaxpr.outvars if v in producers]
    ends += [eqn for eqn in results if not _INNER.isdisjoint(eqn.primitive.tags)]
    kinds = {(eqn.primitive, *[atom.aval for atom in eqn.invars]) for eqn in ends}
    inner = [kernels_of(program) for eqn in jaxpr.eqns for program in _inner_programs(eqn)]
    return len(ends) + sum(n for n, _ in inner), len(ends) - len(kinds) + sum(n for _, n in inner)


def multiplies_vectors(jaxpr: Jaxpr) -> bool:
    """Return whether most kernels of a program are products with a vector, and its other arrays are small."""
    products, largest = products_of(jaxpr)
    return products > 0 and largest <= SMALL and products >= PRODUCTS * kernels_of(jaxpr)[0]


@_memoized
def products_of(jaxpr: Jaxpr) -> tuple[int, float]:
    """Return the number of products with a vector in a program and its inner ones, and the size of their largest array.

    The matrices that vectors are multiplied with do not count as arrays: only the kernels of the products read them.
    """
    products, largest = 0, 0.0
    for eqn in jaxpr.eqns:
        inner = [products_of(program) for program in _inner_programs(eqn)]
        sizes = [] if inner else [_size(atom) for atom in (*eqn.invars, *eqn.outvars)]
        if _has_vector(eqn):
            products += 1
            sizes.remove(max(sizes[:2]))
        # The program of an exported artifact is bytes. The passes vectorise the loops of convolutions.
        if "exported" in eqn.params or eqn.primitive.name == "conv_general_dilated":
            sizes = [math.inf]
        products += sum(count for count, _ in inner)
        largest = max([largest, *sizes, *[size for _, size in inner]])
    return products, largest


def _has_vector(eqn: JaxprEqn) -> bool:
    """Return whether an equation multiplies a matrix or a vector with a vector, in 32 bits or more.

    XLA converts operands of 16 bits, and transposes arrays of three axes: the passes vectorise these loops.
    """
    if eqn.primitive.name != "dot_general" or eqn.outvars[0].aval.dtype.itemsize < 4:
        return False
    if any(v.aval.ndim > 2 for v in eqn.invars):
        return False
    contracted, batch = eqn.params["dimension_numbers"]
    return not batch[0] and any(len(axes) == v.aval.ndim for axes, v in zip(contracted, eqn.invars, strict=True))


def _size(atom: Any) -> float:
    """Return how many elements of four bytes a value is as large as: 0 for a token, infinity for 8-bit floats.

    Smaller elements count as ones of four bytes.
    """
    aval = atom.aval
    if not isinstance(aval, ShapedArray):  # tokens
        return 0
    if aval.dtype.itemsize == 1 and aval.dtype.name.startswith("float"):
        return math.inf
    return aval.size * max(aval.dtype.itemsize / 4, 1.0)
