"""`while_loop`: apply a function of pytrees while a condition holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from corejax.extend import (
    Array,
    ClosedJaxpr,
    Jaxpr,
    Var,
    close_over_consts,
    get_aval,
    inline_closed,
    merge_lists,
    partition_list,
    tree,
)
from corejax.extend.messages import api_boundary
from corejax.extend.transforms import write_cells
from corejax.extend.types import Refinement
from corejax_control_flow.loops import while_partial_eval as while_partial_eval  # registers rules of the primitive
from corejax_control_flow.loops._carries import (
    as_results,
    cached_on,
    carry_fixed_point,
    function_or_raise,
    unchanged,
    without_carries,
)
from corejax_control_flow.loops.progress import COUNT, Progress, ProgressBar, as_progress_bar, counted, first_count
from corejax_control_flow.loops.while_rules import while_p, with_more_arguments
from corejax_control_flow.programs.in_python import in_python, while_in_python
from corejax_control_flow.programs.messages import place
from corejax_control_flow.programs.rewriting import rearranged, without_effects
from corejax_control_flow.programs.tracing import (
    Traced,
    check_leaves,
    common_cells,
    decider_of,
    make_dependent,
    place_cells,
    result_type,
    trace_dependent,
)

T = TypeVar("T")


@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: complex, *, progress: Progress = False
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T, *, progress: Progress = False
) -> T: ...
@overload
def while_loop(  # a first value with numbers inside, or NumPy's arrays
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], T], init_val: Any, *, progress: Progress = False
) -> T: ...
@api_boundary
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    progress: Progress = False,
) -> Any:
    """Apply a function repeatedly while a condition holds.

    Equivalent to this Python loop, but compiled (and batched, differentiated, ...) as one operation:

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Under `vmap` with a condition that differs between elements, the loop runs until the last element ends; elements
    that have ended keep their value. Only forward-mode differentiation is supported, except through leaves that the
    body does not change. If the number of iterations is known, use `scan`, or `fori_loop` with static bounds.

    Args:
        cond_fun: function `val -> bool`, a scalar; it may close over arrays and tracers.
        body_fun: function `val -> val` of pytrees of arrays that keeps their structure, shapes and dtypes; it may
            close over arrays and tracers.
        init_val: initial value. Python scalars in it take the dtype that `body_fun` returns for them.
        progress: progress bar to show: True, its label, or a `ProgressBar`.

    Returns:
        The last value.

    Raises:
        TypeError: if `body_fun` changes the value's structure or types (the message names the leaf, both types and
            the cast), `cond_fun` does not return a boolean scalar, either of them is not a function, or a leaf of
            `init_val` is not an array.
        ValueError: in the backward pass of reverse-mode differentiation.
    """
    function_or_raise("while_loop", "cond_fun must be a function val -> bool", cond_fun)
    function_or_raise("while_loop", "body_fun must be a function val -> val", body_fun)
    init, init_tree = check_leaves("while_loop", body_fun, init_val, "init_val")
    if in_python():
        ended, init_val = while_in_python(cond_fun, body_fun, init_val)
        if ended:
            return init_val
        init, init_tree = check_leaves("while_loop", body_fun, init_val, "init_val")
    bar = as_progress_bar("while_loop", progress)
    init, cond, body = _traced(cond_fun, body_fun, init, init_tree)
    cells = common_cells(cond, body)
    _check_only_read(cond_fun, cond)
    cond = place_cells(cond, cells, len(init), 1)
    cond = cond._replace(jaxpr=cond.jaxpr.replace(outvars=cond.jaxpr.outvars[:1]))
    body = place_cells(body, cells, len(init), len(init))
    outs = while_traced(cond, body, [*init, *[cell.get() for cell in cells]], bar)
    return tree.tree_unflatten(init_tree, write_cells(cells, outs))


def _traced(cond_fun: Any, body_fun: Any, init: list[Any], init_tree: Any) -> tuple[list[Any], Traced, Traced]:
    """Trace condition and body; return them with the initial carries of the types that the body keeps.

    The refinements of the carries depend on the condition, and its own on the carries: iterate to a fixed point.
    """
    in_tree = tree.treedef_tuple([init_tree])
    ends: Refinement | None = None
    while True:
        init, body = carry_fixed_point(
            "while_loop",
            body_fun,
            init,
            init_tree,
            functools.partial(trace_dependent, ends, "while_loop", body_fun, in_tree),
            lambda traced: traced.out_tree,
        )
        cond = trace_dependent(ends, "while_loop", cond_fun, in_tree, [get_aval(x) for x in init])
        _check_condition(cond_fun, cond)
        if decider_of(cond.jaxpr.out_avals[0]) == ends:
            return init, cond, body
        ends = decider_of(cond.jaxpr.out_avals[0])
        init = [make_dependent(x, ends) for x in init]


def _check_only_read(cond_fun: Any, cond: Traced) -> None:
    jaxpr = cond.jaxpr
    for cell, before, after in zip(reversed(cond.cells), reversed(jaxpr.invars), reversed(jaxpr.outvars), strict=False):
        if before is not after:
            raise ValueError(f"while_loop: {place(cond_fun)} may read {cell!r}, but not write it: write it in body_fun")


def _check_condition(cond_fun: Any, traced: Traced) -> None:
    out = traced.jaxpr.out_avals[: traced.out_tree.num_leaves]
    if traced.out_tree == tree.tree_structure(0) and out[0].shape == () and out[0].dtype == np.bool_:
        return
    advice = "Return one boolean, for example from a comparison"
    if len(out) == 1 and out[0].dtype == np.bool_:
        advice = "Reduce it with .all() or .any(), or vmap the loop to run one for each element"
    raise TypeError(f"while_loop: {place(cond_fun)} must return a boolean scalar, got {result_type(traced)}. {advice}")


def while_traced(cond: Traced, body: Traced, init: Sequence[Any], bar: ProgressBar | None = None) -> list[Any]:
    """Bind `while` to a traced condition and body.

    Carries that the body does not change and the condition does not read become constants of the body.
    """
    read = {v for eqn in cond.jaxpr.eqns for v in eqn.invars if type(v) is Var}
    read.update(v for v in cond.jaxpr.outvars if type(v) is Var)
    binders = cond.jaxpr.invars
    same = unchanged(body.jaxpr.invars, body.jaxpr.outvars)
    gone = [flag and v not in read for flag, v in zip(same, binders, strict=True)]
    body_jaxpr = without_carries(body, len(init), gone)
    cond_jaxpr = _condition(cond.jaxpr, gone)
    carry, constant = partition_list(gone, init)
    body_consts = [*constant, *body.consts]
    if bar is not None:
        body_jaxpr = _reporting(body_jaxpr, cond_jaxpr, len(body_consts), len(cond.consts), bar)
        cond_jaxpr = _with_count(cond_jaxpr, len(cond.consts))
        body_consts, carry = [*cond.consts, *body_consts], [first_count(), *carry]
    outs = while_p.bind(
        *cond.consts,
        *body_consts,
        *carry,
        body_jaxpr=body_jaxpr,
        body_nconsts=len(body_consts),
        cond_jaxpr=cond_jaxpr,
        cond_nconsts=len(cond.consts),
    )
    return merge_lists(gone, outs[bar is not None :], as_results(constant))


def _reporting(
    body: ClosedJaxpr, cond: ClosedJaxpr, num_consts: int, num_cond_consts: int, bar: ProgressBar
) -> ClosedJaxpr:
    """Return the body with a count of its iterations, and with the condition's constants before its own."""
    quiet = without_effects(cond)

    def going(count: Any, outs: Sequence[Any], cond_consts: Sequence[Any]) -> Any:
        return inline_closed(quiet, [*cond_consts, *outs])[0]

    return counted(body, num_consts, bar, None, going, cond.in_avals[:num_cond_consts])


def _condition(old: Jaxpr, gone: Sequence[bool]) -> ClosedJaxpr:
    """Return the condition without the carries flagged in `gone`, which it does not read."""

    def make() -> ClosedJaxpr:
        invars = partition_list(gone, old.invars)[0]
        return close_over_consts(Jaxpr(old.constvars, invars, old.eqns, old.outvars, old.debug_info))

    return cached_on(old, ("condition", tuple(gone)), make)


def _with_count(cond: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """Give the condition an unused carry before its other carries, for the number of iterations."""
    last = len(cond.in_avals)
    order = [*range(num_consts), last, *range(num_consts, last)]
    return rearranged(with_more_arguments(cond, [COUNT]), order, [0])
