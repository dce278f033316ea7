"""From users' functions to programs. What a function closes over becomes leading operands.

Loops and branches trace their functions at each call, so that they see whatever has changed since. What is derived of a
program (transformed programs, executables) is kept with the program object; if a trace equals an earlier trace of the
same code, the earlier object takes its place, and nothing is derived twice.
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
    stage,
    tree,
)
from corejax.extend.messages import clears_cache, drop_oldest, run_within
from corejax.extend.programs import programs_of, same_jaxpr
from corejax.extend.transforms import decided_by
from corejax.extend.types import Refinement, conform, join_refinements
from corejax_control_flow.programs.messages import place, typed_tree


class Traced(NamedTuple):
    """A traced function; `consts` are the values of its constvars."""

    jaxpr: Jaxpr
    consts: list[Any]
    out_tree: Any


def trace(transform: str, fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]) -> Traced:
    """Trace a function on arguments of these types; `in_tree` is the structure of the tuple of its arguments."""
    flat = FlatFunction(fun, in_tree)
    debug = DebugInfo(fun, transform, tree.treedef_tuple([in_tree, tree.tree_structure({})]))
    try:
        jaxpr, consts = stage(flat, avals, debug)
    except TypeError as error:
        _explain_arity(error, transform, fun, in_tree)
        raise
    return Traced(known_program(transform, fun, jaxpr), consts, flat.out_tree)


# A value decides which branch runs, or how often a loop does. What its refinement says of any shape holds for all
# values that depend on the decision: devices that decide differently have different values.


def decider_of(*avals: ShapedArray) -> Refinement | None:
    """Return what holds of all values that depend on a decision by values of these types."""
    found = None
    for aval in avals:
        if aval.refinement is not None:
            found = join_refinements(found, aval.refinement.of_any_shape)
    return found


def dependent_type(aval: ShapedArray, decider: Refinement | None) -> ShapedArray:
    """Return the type of a value that depends on a decision."""
    return aval.refined(join_refinements(aval.refinement, decider))


def make_dependent(x: Any, decider: Refinement | None) -> Any:
    """Return a value of the type that it has if it depends on a decision."""
    return x if decider is None else conform(x, dependent_type(get_aval(x), decider))


def trace_dependent(
    decider: Refinement | None, transform: str, fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]
) -> Traced:
    """Trace a function as `trace` does, where a decision says whether or how often the function runs."""
    if decider is None:
        return trace(transform, fun, in_tree, avals)
    return run_within((decided_by(decider),), trace, transform, fun, in_tree, avals)  # type: ignore[no-any-return]


def _explain_arity(error: TypeError, transform: str, fun: Callable[..., Any], in_tree: Any) -> None:
    """Add to Python's own error what the function was called with, if it cannot be called so."""
    if _entered(error, fun):  # `map` makes a function of two arguments of the user's, which has one: both are right
        return
    count = len(in_tree.children())
    try:
        inspect.signature(fun).bind(*range(count))
    except TypeError:
        error.add_note(f"{transform} calls {place(fun)} with {count} argument{'' if count == 1 else 's'}.")
    except ValueError:  # a builtin without a signature
        pass


def _entered(error: TypeError, fun: Callable[..., Any]) -> bool:
    """Whether the user's function ran, so that it is not its call that failed."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return code is not None and any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))


def check_leaves(transform: str, fun: Any, value: Any, name: str) -> tuple[list[Any], Any]:
    """Leaves and structure of one argument.

    Raises:
        TypeError: a leaf is not an array; names it.
    """
    leaves, treedef = tree.tree_flatten(value)
    check_arguments(transform, fun, leaves, lambda: leaf_names(treedef, name))
    return leaves, treedef


def flatten_operands(transform: str, fun: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """Leaves and structure of positional arguments.

    Raises:
        TypeError: a leaf is not an array; names the argument.
    """
    leaves, in_tree = tree.tree_flatten(operands)
    check_arguments(transform, fun, leaves, lambda: arg_names(fun, in_tree))
    return leaves, in_tree


def with_common_consts(traced: Sequence[Traced]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Programs that all take the same leading arguments, the constants of all of them; and those constants."""
    consts: dict[int, Any] = {}
    for t in traced:
        consts.update((id(c), c) for c in t.consts)
    programs = []
    for jaxpr, own, _ in traced:
        if not consts:  # kept with the jaxpr, so that transformations of it are made once
            programs.append(jaxpr.memo.setdefault(("closed",), ClosedJaxpr(jaxpr, ())))
            continue
        binder = dict(zip(map(id, own), jaxpr.constvars, strict=True))
        leading = [binder.get(key) or Var(get_aval(c)) for key, c in consts.items()]
        opened = Jaxpr((), [*leading, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars, jaxpr.debug_info)
        programs.append(ClosedJaxpr(opened, ()))
    return programs, list(consts.values())


def result_type(traced: Traced) -> str:
    """The result of a traced function, as a pytree with types for leaves."""
    return typed_tree(traced.out_tree, traced.jaxpr.out_avals)


_LIMIT = 256  # programs kept; the oldest are dropped
_known: dict[Any, Jaxpr] = {}
clears_cache(_known.clear)


def known_program(transform: str, fun: Callable[..., Any], jaxpr: Jaxpr) -> Jaxpr:
    """Return the earlier program of a function's code if it equals the given one, else the given one, which is kept.

    Programs with functions as parameters are not kept: these may hold arrays, and differ in what they close over.
    """
    if type(fun) is not types.FunctionType:
        return jaxpr
    key = (fun.__code__, transform, *jaxpr.in_avals)
    found = _known.get(key)
    if found is not None and same_jaxpr(found, jaxpr, scopes=True):
        return found
    if not any(callable(x) for part in programs_of(jaxpr) for eqn in part.eqns for x in eqn.params.values()):
        jaxpr.debug_info = jaxpr.debug_info.without_function()
        _known[key] = jaxpr
        drop_oldest(_known, _LIMIT)
    return jaxpr
