"""Tracing of users' functions to jaxprs. Values that a function closes over become leading operands.

Loops and branches trace their functions at each call, so that changes of global state take effect. Transformed
programs and executables are cached on the jaxpr object. So if a new jaxpr equals an earlier one of the same code, the
earlier object replaces it (`known_program`), and the cached transformations and executables are reused.
"""

from __future__ import annotations

import inspect
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    FlatFunction,
    Jaxpr,
    ShapedArray,
    Var,
    arg_names,
    check_arguments,
    get_aval,
    leaf_names,
    split_list,
    tree,
)
from corejax.extend.messages import clears_cache, drop_oldest, run_within
from corejax.extend.programs import programs_of, same_jaxpr
from corejax.extend.transforms import Cell, cells_as_constants, decided_by, stage_with_cells
from corejax.extend.types import Refinement, conform, join_refinements
from corejax_control_flow.programs.messages import place, typed_tree

_NO_KEYWORDS = tree.tree_structure({})


class Traced(NamedTuple):
    """A traced function.

    Attributes:
        jaxpr: the program.
        consts: the values of its constvars.
        out_tree: the structure of the function's result.
        cells: the cells that the function uses; their values are the program's last arguments and results.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    out_tree: Any
    cells: tuple[Cell, ...] = ()


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Return whether two types are equal apart from weak types and refinements."""
    return a.strip_weak_type().refined(None) is b.strip_weak_type().refined(None)


def trace(transform: str, fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]) -> Traced:
    """Trace a function on leaves of these types; `in_tree` is the structure of the tuple of its arguments.

    Raises:
        ValueError: if the function writes a cell of an enclosing function. It may read cells, which are constants.
    """
    traced = trace_with_cells(transform, fun, in_tree, avals)
    if not traced.cells:
        return traced
    use = f"tracing {place(fun)} for {transform}"
    return Traced(*cells_as_constants(traced.jaxpr, traced.consts, traced.cells, use), traced.out_tree)


def trace_with_cells(
    transform: str,
    fun: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[ShapedArray],
    flat_type: type[FlatFunction] = FlatFunction,
) -> Traced:
    """Trace a function, as `trace`, that may read and write cells of enclosing functions."""
    flat = flat_type(fun, in_tree)
    debug = DebugInfo(fun, transform, tree.treedef_tuple([in_tree, _NO_KEYWORDS]))
    try:
        jaxpr, consts, cells = stage_with_cells(flat, avals, debug)
    except TypeError as error:
        _explain_arity(error, transform, fun, in_tree)
        raise
    return Traced(known_program(transform, fun, jaxpr), consts, flat.out_tree, cells)


# A predicate decides which branch runs, or how many iterations a loop has. If the predicate varies over devices,
# all values that depend on the decision vary too. The part of the predicate's refinement that holds for any shape
# (the axes that it varies over) is therefore joined to the refinement of each dependent value.


def decider_of(*avals: ShapedArray) -> Refinement | None:
    """Return the refinement of all values that depend on a decision by values of these types."""
    refinement = None
    for aval in avals:
        if aval.refinement is not None:
            refinement = join_refinements(refinement, aval.refinement.of_any_shape)
    return refinement


def dependent_type(aval: ShapedArray, decider: Refinement | None) -> ShapedArray:
    """Join the refinement of a decision to a type."""
    return aval.refined(join_refinements(aval.refinement, decider))


def make_dependent(x: Any, decider: Refinement | None) -> Any:
    """Conform a value to its type after a decision, see `dependent_type`."""
    return x if decider is None else conform(x, dependent_type(get_aval(x), decider))


def trace_dependent(decider: Refinement | None, *args: Any) -> Traced:
    """Trace a function by `trace_with_cells(*args)`, in a context where all its values depend on a decision."""
    if decider is None:
        return trace_with_cells(*args)
    return run_within((decided_by(decider),), trace_with_cells, *args)


def _explain_arity(error: TypeError, transform: str, fun: Callable[..., Any], in_tree: Any) -> None:
    """Add a note with the number of arguments to Python's error, if the function cannot take that many."""
    # If the user's function ran, its call was right: `map` wraps a function of one argument in one of two.
    if _entered(error, fun):
        return
    count = len(in_tree.children())
    try:
        inspect.signature(fun).bind(*range(count))
    except TypeError:
        error.add_note(f"{transform} calls {place(fun)} with {count} argument{'' if count == 1 else 's'}.")
    except ValueError:  # a builtin without a signature
        pass


def _entered(error: TypeError, fun: Callable[..., Any]) -> bool:
    """Return whether the user's function ran, so that the error does not come from its call."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return code is not None and any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))


def check_leaves(transform: str, fun: Any, value: Any, name: str) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of one argument.

    Raises:
        TypeError: if a leaf is not an array. The message names the leaf.
    """
    leaves, treedef = tree.tree_flatten(value)
    check_arguments(transform, fun, leaves, lambda: leaf_names(treedef, name))
    return leaves, treedef


def flatten_operands(transform: str, fun: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of positional arguments.

    Raises:
        TypeError: if a leaf is not an array. The message names the argument.
    """
    leaves, in_tree = tree.tree_flatten(operands)
    check_arguments(transform, fun, leaves, lambda: arg_names(fun, in_tree))
    return leaves, in_tree


def with_common_consts(traced: Sequence[Traced]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Return programs that all take the constants of all of them as leading arguments, and these constants."""
    consts: dict[int, Any] = {}
    for t in traced:
        consts.update((id(c), c) for c in t.consts)
    programs = []
    for jaxpr, own, *_ in traced:
        if not consts:  # cached on the jaxpr, so that transformations of the closed jaxpr are computed once
            programs.append(jaxpr.memo.setdefault(("closed",), ClosedJaxpr(jaxpr, ())))
            continue
        binder = dict(zip(map(id, own), jaxpr.constvars, strict=True))
        leading = [binder.get(key) or Var(get_aval(c)) for key, c in consts.items()]
        opened = Jaxpr((), [*leading, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
        programs.append(ClosedJaxpr(opened, ()))
    return programs, list(consts.values())


def common_cells(*traced: Traced) -> tuple[Cell, ...]:
    """Return the cells that at least one of the functions uses."""
    return (*dict.fromkeys(cell for each in traced for cell in each.cells),)


def place_cells(traced: Traced, cells: tuple[Cell, ...], num_in: int, num_out: int) -> Traced:
    """Return a traced function whose program has the values of `cells` at these positions of arguments and results.

    The program passes the value of a cell that the function does not use through.
    """
    if not cells:
        return traced
    jaxpr, count = traced.jaxpr, len(traced.cells)
    order = tuple(traced.cells.index(cell) if cell in traced.cells else cell.aval for cell in cells)

    def make() -> Jaxpr:
        invars, before = split_list(jaxpr.invars, [len(jaxpr.invars) - count])
        outvars, after = split_list(jaxpr.outvars, [len(jaxpr.outvars) - count])
        pairs = list(zip(before, after, strict=True))
        placed = [pairs[i] if isinstance(i, int) else (Var(i),) * 2 for i in order]
        invars[num_in:num_in] = [before for before, _ in placed]
        outvars[num_out:num_out] = [after for _, after in placed]
        return Jaxpr(jaxpr.constvars, invars, jaxpr.eqns, outvars, jaxpr.debug_info)

    key = ("cells", order, num_in, num_out)
    placed = jaxpr.memo.get(key) or jaxpr.memo.setdefault(key, make())
    return traced._replace(jaxpr=placed, cells=cells)


def result_type(traced: Traced) -> str:
    """Format the result of a traced function as a pytree with types for leaves."""
    return typed_tree(traced.out_tree, traced.jaxpr.out_avals[: traced.out_tree.num_leaves])


_LIMIT = 256  # size of the cache; the oldest programs are evicted
_known: dict[Any, Jaxpr] = {}
clears_cache(_known.clear)


def _holds_function(jaxpr: Jaxpr) -> bool:
    """Return whether a program, or one in its parameters, has a function among its parameters."""
    for program in programs_of(jaxpr):
        for eqn in program.eqns:
            if any(map(callable, eqn.params.values())):
                return True
    return False


def known_program(transform: str, fun: Callable[..., Any], jaxpr: Jaxpr) -> Jaxpr:
    """Return the cached program of a function's code if it equals `jaxpr`; else cache `jaxpr` and return it.

    Programs with functions among their parameters are not cached: such functions may hold arrays alive, and two of
    them with the same code may close over different values.
    """
    if type(fun) is not types.FunctionType:
        return jaxpr
    key = (fun.__code__, transform, *jaxpr.in_avals)
    cached = _known.get(key)
    if cached is not None and same_jaxpr(cached, jaxpr, scopes=True):
        return cached
    if not _holds_function(jaxpr):
        jaxpr.debug_info = jaxpr.debug_info.without_function()
        _known[key] = jaxpr
        drop_oldest(_known, _LIMIT)
    return jaxpr
