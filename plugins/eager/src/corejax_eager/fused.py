"""Calls of remembered functions with large operands: compiled as one program, from the first call on.

Calls that differ in numbers of Python's have other programs each, up to a few. Then one program takes the numbers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ClosedJaxpr, Tracer, as_array, dtypes, get_aval, is_spread, stage_closed, tree
from corejax.extend.speed import source_info
from corejax_eager import large

LIMIT = 512  # programs of one function
ARRAYS = frozenset({Array})
NUMBERS = frozenset({float, complex})  # integers say what is computed as often as not
ARRAYS_AND_NUMBERS = ARRAYS | NUMBERS
_COUNTED = NUMBERS | {int}
_MOST_NUMBERS, _MOST_PROGRAMS = 2, 8

MISSING = object()  # what is found of a call that has not been met


class CompiledCall:
    """A recorded call with large operands, which is compiled."""

    __slots__ = ("name", "program", "tree")

    def __init__(self, program: ClosedJaxpr, structure: Any, name: str) -> None:
        self.program = program
        self.tree = structure
        self.name = name

    def run(self, arrays: Sequence[Array]) -> Any:
        """The results for operands of the recorded types.

        Raises:
            ValueError: an operand's parts are on several devices, where the results are to be.
            RuntimeError: nothing compiles.
        """
        if any(x._host is None and is_spread(x) for x in arrays):
            raise ValueError("on several devices")
        outs = large.run_program(self.program, [*arrays], self.name)
        if outs is None:
            raise RuntimeError("nothing compiles")
        return outs[0] if self.tree is None else tree.unflatten(self.tree, outs)


def fused_call(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    programs: dict[Any, Any],
    exact: Any,
    again: bool,
    operands: bool,
) -> tuple[Any, Sequence[Array]]:
    """The call as a program that is compiled whole, and its operands; `MISSING` where that does not pay.

    Calls with other numbers of Python's are other programs, up to a few: then floats and complex numbers are operands,
    too, if they may be (`operands`), or nothing is compiled, as for the ninth integer. A program that rounds nothing is
    compiled when it comes again only (`again`).
    """
    leaves, structure = tree.flatten((args, kwargs))
    types = {*map(type, leaves)}
    common, every = (
        None if types.isdisjoint(counted) else calls_with_other_numbers(programs, exact[0], leaves, structure, counted)
        for counted in (NUMBERS, _COUNTED)
    )
    if common is not None and common.compiled is None and common.met >= _MOST_NUMBERS:
        common.compiled = operands and may_be_operands(leaves) and _fusable(fun, leaves, structure, ARRAYS_AND_NUMBERS)
    if common is not None and type(common.compiled) is CompiledCall:
        return common.compiled, [as_array(x) for x in leaves if type(x) in ARRAYS_AND_NUMBERS]
    arrays = [x for x in leaves if type(x) is Array]
    if (common is not None and common.compiled is False) or (every is not None and every.met >= _MOST_PROGRAMS):
        return MISSING, arrays
    found = _fusable(fun, leaves, structure, ARRAYS)
    if not isinstance(found, CompiledCall) or (not again and large.is_exact(found.program)):
        return MISSING, arrays
    for counts in {common, every}:
        if counts is not None:
            counts.met += 1
    if len(programs) >= LIMIT:
        programs.clear()
    programs[exact] = found
    return found, arrays


class ScalarVariants:
    """What calls have in common that differ in numbers of Python's.

    Attributes:
        met: how many there were, of large ones how many were compiled, each for itself.
        compiled: the program that takes the numbers, of large ones; None so far, False where there is none: they are
            shapes, say.
        program: the same of small ones, and then the function that it is written out as.
        agreed: how often it gave the bits that the function gave.
    """

    __slots__ = ("agreed", "compiled", "met", "program")

    def __init__(self) -> None:
        self.met = self.agreed = 0
        self.compiled: CompiledCall | bool | None = None
        self.program: Any = None


def may_be_operands(leaves: Sequence[Any]) -> bool:
    """Whether numbers of Python's, as arrays, are rounded as in the function: to float32 at once, beside others."""
    return not any(type(x) is Array and x.aval.dtype in _OTHER_FLOATS for x in leaves)


_OTHER_FLOATS = frozenset(
    d for d in dtypes.LONG_NAMES.values() if dtypes.is_inexact(d) and d not in (np.float32, np.complex64)
)


def calls_with_other_numbers(
    programs: dict[Any, Any], settings: int, leaves: Sequence[Any], structure: Any, counted: frozenset[type] = NUMBERS
) -> ScalarVariants | None:
    """What is known of the calls that differ from one in numbers only; None where they cannot be told from others."""
    types = [x.aval if type(x) is Array else type(x) if type(x) in counted else x for x in leaves]
    try:
        return programs.setdefault((ScalarVariants, settings, structure, *types), ScalarVariants())  # type: ignore[no-any-return]
    except TypeError:  # what has no hash
        return None


def _fusable(
    fun: Callable[..., Any], leaves: Sequence[Any], structure: Any, taken: frozenset[type]
) -> CompiledCall | bool:
    """The call as a program of the leaves of some types, which is compiled whole; False where that does not pay."""
    recorded = staged(fun, leaves, structure, taken)
    if recorded is None or not large.is_worth_fusing(recorded[0]):
        return False
    return CompiledCall(*recorded, getattr(fun, "__name__", "remembered"))


def staged(
    fun: Callable[..., Any], leaves: Sequence[Any], structure: Any, taken: frozenset[type]
) -> tuple[ClosedJaxpr, Any] | None:
    """The call as a program of the leaves of some types, and how its results are put together (None for one array)."""
    where = [i for i, x in enumerate(leaves) if type(x) in taken]
    out_tree: Any = None

    def flat(*tracers: Any) -> list[Any]:
        nonlocal out_tree
        given = list(leaves)
        for i, tracer in zip(where, tracers, strict=True):
            given[i] = tracer
        called, named = tree.unflatten(structure, given)
        out = fun(*called, **named)
        outs, out_tree = tree.flatten(out)
        if not all(type(x) is Array or isinstance(x, Tracer) for x in outs):
            raise TypeError("not arrays")
        if isinstance(out, Array):
            out_tree = None
        return outs

    warned = source_info.warnings_given[0]
    try:
        closed = stage_closed(flat, [get_aval(leaves[i]) for i in where])
    except Exception:
        return None
    return None if closed.jaxpr.effects or source_info.warnings_given[0] != warned else (closed, out_tree)
