"""Calls of remembered functions with large operands: compiled as one program, from the first call on.

Calls that differ in Python numbers have other programs each, up to `_MOST`; floats and complex numbers are operands
instead, if the function was marked so (`remembered(numbers=True)`) and they are rounded alike as operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, ClosedJaxpr, Tracer, as_array, dtypes, get_aval, stage_closed, tree
from corejax.extend.devices import is_spread
from corejax.extend.speed import source_info
from corejax_eager import large

LIMIT = 512  # programs of one function
ARRAYS = frozenset({Array})
NUMBERS = frozenset({float, complex})  # integers say what is computed as often as not
ARRAYS_AND_NUMBERS = ARRAYS | NUMBERS
_COUNTED = NUMBERS | {int}
_MOST = 8  # programs for calls that differ in numbers only: compiling one costs as much as many calls by NumPy

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
    calls: dict[Any, Any],
    exact: tuple[Any, ...],
    again: bool,
    numbers: bool,
) -> tuple[Any, Sequence[Array]]:
    """Find or make the compiled program of a call with large operands.

    Args:
        fun, args, kwargs: the call.
        calls: what is remembered of the function.
        exact: the key of the call in it, which begins with the settings.
        again: whether the same call was made before: a program that rounds nothing is compiled then only.
        numbers: whether floats and complex numbers may be operands.

    Returns:
        The program, or `MISSING` if it is not worth compiling; and its operands.
    """
    leaves, structure = tree.flatten((args, kwargs))
    taken = ARRAYS_AND_NUMBERS if numbers and _are_rounded_alike(leaves) else ARRAYS
    kinds = [x.aval if type(x) is Array else type(x) if type(x) in _COUNTED else x for x in leaves]
    static = tuple([repr(x) for x in leaves if type(x) in _COUNTED and type(x) not in taken])  # -0.0 is not 0.0
    try:
        operands = [as_array(x) for x in leaves if type(x) in taken]
        variants = calls.setdefault((CompiledCall, exact[0], structure, *kinds), {})
    except (TypeError, OverflowError):  # what has no hash; a number that the function knows what to do with
        return MISSING, ()
    found = variants.get(static)
    if found is None and len(variants) < _MOST:
        found = variants[static] = _fusable(fun, leaves, structure, taken)
    if not isinstance(found, CompiledCall) or (not again and large.is_exact(found.program)):
        return MISSING, ()
    if taken is ARRAYS:
        calls[exact] = found
    return found, operands


def _are_rounded_alike(leaves: Sequence[Any]) -> bool:
    """Tell whether numbers of Python's are rounded as arrays are: to float32 at once, beside others."""
    return not any(type(x) is Array and x.aval.dtype in _OTHER_FLOATS for x in leaves)


_OTHER_FLOATS = frozenset(
    d for d in dtypes.LONG_NAMES.values() if dtypes.is_inexact(d) and d not in (np.float32, np.complex64)
)


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
