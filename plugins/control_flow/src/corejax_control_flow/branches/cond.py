"""`cond` and `switch`: conditionals between functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from corejax.extend import (
    Array,
    ShapedArray,
    Tracer,
    as_array,
    dtypes,
    get_aval,
    host_value,
    jaxpr_as_fun,
    leaf_names,
    stage_closed,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import write_cells
from corejax.extend.types import Refinement, conform, join_refinements
from corejax_control_flow.branches import cond_partial_eval as cond_partial_eval  # registers partial evaluation
from corejax_control_flow.branches.cond_rules import cond_p
from corejax_control_flow.programs.in_python import in_python, known, results
from corejax_control_flow.programs.messages import place, shown, structural_difference, whence_wide
from corejax_control_flow.programs.rewriting import appended
from corejax_control_flow.programs.tracing import (
    Traced,
    common_cells,
    decider_of,
    flatten_operands,
    make_dependent,
    place_cells,
    result_type,
    trace_dependent,
    with_common_consts,
)
from corejax_control_flow.programs.weak_types import common_dtype, convert, same_class

_ABSENT = object()
R = TypeVar("R")


# A function that returns a Python number has an array as its result.
@overload
def cond(
    pred: Any, true_fun: Callable[..., Array], false_fun: Callable[..., Array], *operands: Any, operand: Any = ...
) -> Array: ...
@overload
def cond(
    pred: Any,
    true_fun: Callable[..., complex],
    false_fun: Callable[..., Array | complex],
    *operands: Any,
    operand: Any = ...,
) -> Array: ...
@overload
def cond(
    pred: Any, true_fun: Callable[..., Array], false_fun: Callable[..., complex], *operands: Any, operand: Any = ...
) -> Array: ...
@overload
def cond(
    pred: Any, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any, operand: Any = ...
) -> R: ...
@overload
def cond(
    pred: Any,
    true_operand: Any,
    true_fun: Callable[[Any], R],
    false_operand: Any,
    false_fun: Callable[[Any], R],
) -> R: ...
@api_boundary
def cond(pred: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply one of two functions, chosen by a predicate when the program runs.

    There are two forms, distinguished by the position of the functions:

        cond(pred, true_fun, false_fun, *operands)
        cond(pred, true_operand, true_fun, false_operand, false_fun)

    Only the chosen function runs, except under `vmap` with a mapped predicate, where both do. Both are always
    traced, whether or not the predicate is known. Forward- and reverse-mode derivatives are those of the chosen
    function.

    Args:
        pred: boolean scalar, or a number, which counts as true unless it is zero.
        true_fun: function of the operands (pytrees of arrays); it may close over arrays and tracers.
        false_fun: function of the operands; its result must have the structure, shapes and dtypes of `true_fun`'s.
            A weakly typed result, as of Python scalars, takes the other function's dtype.
        *args: in the first form, the operands of the chosen function; in the second, `true_operand` for
            `true_fun` and `false_operand` for `false_fun`.
        **kwargs: any of these arguments by name. `operand=x` passes a single operand.

    Returns:
        The result of the chosen function. A leaf is weakly typed if it is weakly typed in both functions.

    Raises:
        TypeError: if the predicate is not a scalar boolean or real number, an operand is not an array, or the
            functions' results differ in structure or type.
    """
    five = {"true_operand", "false_operand"} & kwargs.keys()
    if five or (len(args) == 4 and not kwargs and callable(args[1]) and callable(args[3]) and not callable(args[0])):
        return _cond_of_two_operands(pred, *args, **kwargs)
    return _cond_of_operands(pred, *args, **kwargs)


def _cond_of_operands(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _ABSENT,
) -> Any:
    operands = _operands("cond", operands, operand)
    index = _predicate_index(pred)
    for name, fun in (("true_fun", true_fun), ("false_fun", false_fun)):
        if not callable(fun):
            raise TypeError(
                f"cond: {name} must be a function, got {fun!r} of type {type(fun).__name__}. Call it as "
                "cond(pred, true_fun, false_fun, *operands) or as "
                "cond(pred, true_operand, true_fun, false_operand, false_fun)"
            )
    return _choose("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _cond_of_two_operands(
    pred: Any,
    true_operand: Any,
    true_fun: Callable[..., Any],
    false_operand: Any,
    false_fun: Callable[..., Any],
) -> Any:
    def on_true(true_operand: Any, false_operand: Any) -> Any:
        return true_fun(true_operand)

    def on_false(true_operand: Any, false_operand: Any) -> Any:
        return false_fun(false_operand)

    for wrapper, fun in ((on_true, true_fun), (on_false, false_fun)):
        # Error messages follow `__wrapped__` and so name the user's function.
        wrapper.__wrapped__ = fun  # type: ignore[attr-defined]  # for messages, as functools.wraps sets it
    return _cond_of_operands(pred, on_true, on_false, true_operand, false_operand)


# Python's errors about missing arguments print the qualified name.
_cond_of_operands.__qualname__ = _cond_of_two_operands.__qualname__ = "cond"


@api_boundary
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = _ABSENT) -> R:
    """Apply one of several functions, chosen by an index when the program runs.

    Args:
        index: integer scalar, clamped to the range of the branches.
        branches: functions of the operands, with results of one structure and type (see `cond`).
        *operands: arguments of the chosen function.
        operand: a single operand; `operand=x` is the same as passing `x` by position.

    Returns:
        The result of the chosen function. A leaf is weakly typed if it is weakly typed in all branches. A single
        branch is called directly, without tracing.

    Raises:
        TypeError: if the index is not an integer scalar, a branch is not a function, or results differ.
        ValueError: if there are no branches.
    """
    operands = _operands("switch", operands, operand)
    if not isinstance(branches, Iterable):
        raise TypeError(
            f"switch: branches must be a sequence of functions, got {branches!r} of type {type(branches).__name__}"
        )
    branches = tuple(branches)
    for i, branch in enumerate(branches):
        if not callable(branch):
            raise TypeError(f"switch: branches[{i}] must be a function, got {branch!r} of type {type(branch).__name__}")
    if not branches:
        raise ValueError("switch needs at least one branch, got none")
    index = _clamped_index(index, len(branches))
    if len(branches) == 1:
        return branches[0](*operands)
    names = tuple(f"branches[{i}]" for i in range(len(branches)))
    return _choose("switch", index, branches, names, operands)  # type: ignore[no-any-return]  # its type is lost


def _operands(transform: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _ABSENT:
        return operands
    if operands:
        raise TypeError(f"{transform} takes its operands by position or as `operand`, not both")
    return (operand,)


# -- predicates and indices ----------------------------------------------------------------------------------


def _scalar_aval(transform: str, noun: str, x: Any, hint: str) -> ShapedArray:
    try:
        aval = get_aval(x)
    except TypeError:
        raise TypeError(
            f"{transform}: the {noun} must be a scalar array or number, got {x!r} of type {type(x).__name__}"
        ) from None
    if aval.shape != ():
        raise TypeError(f"{transform}: the {noun} must be a scalar, got {shown(aval)}. {hint}")
    return aval


def _int32(value: int) -> Any:
    return as_array(np.asarray(value, np.int32))


def _predicate_index(pred: Any) -> Any:
    """Return 0 for a false predicate and 1 for a true one, as int32[]."""
    hint = "To choose element by element, use lax.select; to choose for each element of a batch, vmap the cond"
    aval = _scalar_aval("cond", "predicate", pred, hint)
    if not (dtypes.is_bool(aval.dtype) or dtypes.is_integer(aval.dtype) or dtypes.is_float(aval.dtype)):
        raise TypeError(
            f"cond: the predicate must be a boolean or a real number, got {shown(aval)}. Compare it: pred != 0"
        )
    if not isinstance(pred, Tracer):
        return _int32(bool(host_value(pred)))
    from corejax_lax_basic import lax

    if not dtypes.is_bool(aval.dtype):
        pred = lax.ne(pred, as_array(np.zeros((), aval.dtype)))
    return lax.convert_element_type(pred, np.int32)


def _clamped_index(index: Any, count: int) -> Any:
    """Clamp the index to the range from 0 to `count - 1` and return it as int32[]."""
    aval = _scalar_aval("switch", "index", index, "To choose for each element of a batch, vmap the switch")
    if not dtypes.is_integer(aval.dtype):
        advice = "use cond, or " if dtypes.is_bool(aval.dtype) else ""
        raise TypeError(f"switch: the index must be an integer, got {shown(aval)}: {advice}cast it, .astype('int32')")
    if not isinstance(index, Tracer):
        return _int32(min(max(int(host_value(index)), 0), count - 1))
    from corejax_lax_basic import lax

    info = dtypes.iinfo(aval.dtype)
    if info.max > np.iinfo(np.int32).max:  # clamp before the conversion to int32, which would wrap
        bounds = [as_array(np.asarray(b, aval.dtype)) for b in (0, count - 1)]
        return lax.convert_element_type(lax.clamp(bounds[0], index, bounds[1]), np.int32)
    return lax.clamp(_int32(0), lax.convert_element_type(index, np.int32), _int32(count - 1))


# -- branches ------------------------------------------------------------------------------------------------


def _choose(transform: str, index: Any, funs: Sequence[Any], names: Sequence[str], operands: tuple[Any, ...]) -> Any:
    if in_python() and (chosen := known(index)) is not None:
        return results(funs[int(chosen)](*operands))
    leaves, in_tree = flatten_operands(transform, funs[0], operands)
    choice = decider_of(get_aval(index))
    leaves = [make_dependent(x, choice) for x in leaves]
    avals = [get_aval(x) for x in leaves]
    # A function that stands for several branches is traced once.
    traced_by_id = {
        id(fun): trace_dependent(choice, transform, fun, in_tree, avals) for fun in {id(f): f for f in funs}.values()
    }
    traced = [traced_by_id[id(fun)] for fun in funs]
    cells = common_cells(*traced)
    traced = [place_cells(t, cells, len(leaves), t.out_tree.num_leaves) for t in traced]
    common = _common_dtypes(transform, funs, names, traced)
    programs, consts = with_common_consts(traced)
    programs = [_with_dtypes(program, common) for program in programs]
    args = [*consts, *leaves, *[cell.get() for cell in cells]]
    programs, args = _refined_alike(programs, args, choice)
    outs = cond_p.bind(index, *args, branches=tuple(programs), linear=(False,) * len(args))
    return tree.tree_unflatten(traced[0].out_tree, write_cells(cells, outs))


def _with_dtypes(program: Any, wanted: Sequence[Any]) -> Any:
    """Convert the weakly typed outputs of a program to the dtypes of the other branches' outputs."""
    if all(a.dtype == d for a, d in zip(program.out_avals, wanted, strict=True)):
        return program
    return appended(
        program,
        lambda outs, _: [x if x.dtype == d else convert(x, d) for x, d in zip(outs, wanted, strict=True)],
    )


def _refined_alike(programs: list[Any], args: list[Any], choice: Refinement | None) -> tuple[list[Any], list[Any]]:
    """Give the results of all programs the same refinements; return the programs and their operands.

    Results and operands depend on the choice: devices that choose another branch contribute nothing to the sum of
    an operand's cotangents.
    """
    if choice is not None:
        args = [make_dependent(x, choice) for x in args]
        avals = [get_aval(x) for x in args]
        programs = [stage_closed(jaxpr_as_fun(p), avals, p.jaxpr.debug_info) for p in programs]
    columns = list(zip(*(p.out_avals for p in programs), strict=True))
    wanted = [functools.reduce(join_refinements, (a.refinement for a in c), choice) for c in columns]
    if any(a.refinement != w for c, w in zip(columns, wanted, strict=True) for a in c):
        avals = [c[0].refined(w) for c, w in zip(columns, wanted, strict=True)]
        programs = [appended(p, lambda outs, _: list(map(conform, outs, avals))) for p in programs]
    return programs, args


def _common_dtypes(transform: str, funs: Sequence[Any], names: Sequence[str], traced: Sequence[Traced]) -> list[Any]:
    """Return the dtype of each leaf of the result.

    Raises:
        TypeError: if the branches' results differ in structure, shape or dtype. The message shows two of them.
    """
    if transform == "cond":  # the last branch is true_fun, and messages mention it first
        funs, names, traced = funs[::-1], names[::-1], traced[::-1]

    def disagreement(other: int, what: str, more: str = "") -> TypeError:
        lines = [f"  {names[i]} ({place(funs[i])}) returns {result_type(traced[i])}" for i in (0, other)]
        return TypeError("\n".join([f"{transform} {what}", *lines]) + more)

    out_tree = traced[0].out_tree
    for other, t in enumerate(traced[1:], 1):
        if t.out_tree != out_tree:
            at = structural_difference("", out_tree, t.out_tree).removeprefix("at the root: ")
            raise disagreement(other, f"branch outputs must have the same pytree structure, but two differ ({at}):")
    wanted = []
    for i, column in enumerate(zip(*(t.jaxpr.out_avals for t in traced), strict=True)):
        dtype = common_dtype(column)
        if dtype is None:
            pairs = ((column[0], aval) for aval in column)
            other = next((j for j, pair in enumerate(pairs) if common_dtype(pair) is None), len(column) - 1)
            first, second = column[0], column[other]
            whence = whence_wide(first, second) if first.shape == second.shape else ""
            difference = _leaf_difference(leaf_names(out_tree)[i], first, second)
            raise disagreement(other, f"branches must have equal output types, but two differ {difference}", whence)
        wanted.append(dtype)
    return wanted


def _leaf_difference(where: str, first: ShapedArray, second: ShapedArray) -> str:
    both = f"{shown(first)} and {shown(second)}"
    castable = first.shape == second.shape and same_class(first, second)
    advice = "" if not castable else f" (cast one of them: .astype('{first.dtype.name}'))"
    return f"{f'at {where}' if where else 'in type'}, {both}{advice}:"
