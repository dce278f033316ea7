"""`checkpoint` (`remat`): the backward pass recomputes inner values of a function, instead of saving them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from corejax.extend import (
    ClosedJaxpr,
    DebugInfo,
    FlatFunction,
    ShapedArray,
    Tracer,
    check_arguments,
    close_over_consts,
    config,
    fun_name,
    get_aval,
    tree,
)
from corejax.extend.messages import api_boundary, exact
from corejax.extend.programs import Policy
from corejax.extend.transforms import Cell, axes_in_scope, named_as, stage_with_cells, write_cells
from corejax_control_flow.checkpoint.checkpoint_rules import remat_p

P = ParamSpec("P")
R = TypeVar("R")

_STATIC = object()


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """Recompute a function's inner values in the backward pass, instead of saving them.

    The derivative saves only the arguments and the values that the policy selects; the backward pass recomputes its
    other residuals from these. This takes less memory and more time. Closed-over values count as arguments. The
    function is traced when it is called, so that its Python control flow can depend only on static arguments and types.

    Args:
        fun: function of arrays (in pytrees), positional or by keyword. If it is None, return a decorator.
        prevent_cse: if True, prevent the compiler from merging the repeated computation with the first one, which
            would undo the saving of memory. Inside the body of a `scan` the compiler cannot merge them, and False
            allows more optimisations. A pytree of flags, one for each argument, counts as True if any flag is True.
        policy: function `policy(primitive, *avals, **params) -> bool` that selects further values to save; see
            `corejax.checkpoint_policies`. None selects no value.
        static_argnums: positions of arguments that are passed unchanged. If all of them are hashable, calls with equal
            static arguments share one trace.
        static_argnames: names of keyword arguments that are passed unchanged.

    Returns:
        A function that computes the same.

    Raises:
        TypeError: if `fun` is not a function, or `policy` is neither a function nor None; at a call, if an argument is
            neither an array nor static.
        ValueError: at a call, if `static_argnums` has a position that the call has no argument for.
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    _check_functions(fun, policy)
    numbers, names = _integers(fun, static_argnums), _names(fun, static_argnames)
    traces: dict[Any, _Traced] = {}

    @api_boundary
    @named_as(fun, functools.WRAPPER_ASSIGNMENTS)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = _static(fun, args, numbers)
        named = {name: kwargs[name] for name in names if name in kwargs}
        traced_args = tuple(x for i, x in enumerate(args) if i not in static)
        traced_kwargs = {name: x for name, x in kwargs.items() if name not in named}
        leaves, in_tree = tree.tree_flatten((traced_args, traced_kwargs))
        call = _Call(fun, len(args), static, named, in_tree)
        check_arguments("checkpoint", fun, leaves, lambda: call.debug_info().arg_names())
        traced = _trace(call, [get_aval(x) for x in leaves], traces)
        outs = remat_p.bind(
            *traced.consts,
            *leaves,
            *[cell.get() for cell in traced.cells],
            differentiated=False,
            jaxpr=traced.closed,
            policy=policy,
            prevent_cse=any(tree.tree_leaves(prevent_cse)),
        )
        return tree.tree_unflatten(traced.out_tree, write_cells(traced.cells, outs))

    return checkpointed


remat = checkpoint


def _check_functions(fun: Any, policy: Any) -> None:
    if not callable(fun):
        raise TypeError(f"checkpoint takes a function, got {fun!r} of type {type(fun).__name__}")
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint of {fun_name(fun)}: policy must be a function such as "
            f"corejax.checkpoint_policies.dots_saveable, got {policy!r} of type {type(policy).__name__}"
        )


def _integers(fun: Any, static_argnums: Any) -> tuple[int, ...]:
    numbers = static_argnums if isinstance(static_argnums, Sequence | set | frozenset) else (static_argnums,)
    try:
        return tuple(operator.index(i) for i in numbers)
    except TypeError:
        raise TypeError(
            f"checkpoint of {fun_name(fun)}: static_argnums must be an integer or several, got {static_argnums!r}"
        ) from None


def _names(fun: Any, static_argnames: Any) -> tuple[str, ...]:
    is_single = isinstance(static_argnames, str) or not isinstance(static_argnames, Iterable)
    names = (static_argnames,) if is_single else tuple(static_argnames)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"checkpoint of {fun_name(fun)}: static_argnames must be a name or several, got {static_argnames!r}"
        )
    return names


def _static(fun: Any, args: Sequence[Any], numbers: Sequence[int]) -> dict[int, Any]:
    """Return static arguments by position."""
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"checkpoint of {fun_name(fun)}: static_argnums has {i}, but the call has {len(args)} positional "
                "arguments; those given by keyword are traced"
            )
    return {i % len(args): args[i] for i in numbers}


class _Traced(NamedTuple):
    """A traced function: its program, the values of the program's leading arguments, the structure of its result.

    The values of `cells` are the program's last arguments and results.
    """

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any
    cells: tuple[Cell, ...]


class _Call(NamedTuple):
    """The parts of a call that are not arrays."""

    fun: Callable[..., Any]
    num_args: int
    static: dict[int, Any]
    named: dict[str, Any]
    in_tree: Any

    def merge(self, args: Sequence[Any], static: dict[int, Any]) -> tuple[Any, ...]:
        """Merge traced and static positional arguments."""
        traced = iter(args)
        return tuple(static[i] if i in static else next(traced) for i in range(self.num_args))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with the traced arguments, and the static ones of this call."""
        return self.fun(*self.merge(args, self.static), **kwargs, **self.named)

    def debug_info(self) -> DebugInfo:
        """Return the names of the traced arguments, for messages."""
        if not self.static and not self.named:
            return DebugInfo(self.fun, "checkpoint", self.in_tree)
        args, kwargs = tree.tree_unflatten(self.in_tree, range(self.in_tree.num_leaves))
        named = dict.fromkeys(self.named, _STATIC)
        positional = self.merge(args, dict.fromkeys(self.static, _STATIC))
        leaves, treedef = tree.tree_flatten((positional, {**kwargs, **named}))
        return DebugInfo(self.fun, "checkpoint", treedef, tuple(i for i, x in enumerate(leaves) if x is not _STATIC))


def _trace(call: _Call, avals: Sequence[ShapedArray], traces: dict[Any, _Traced]) -> _Traced:
    """Return the program of a call, which is cached, so that equal layers share it and its transformations."""
    static = tuple((i, type(x), exact(x)) for values in (call.static, call.named) for i, x in sorted(values.items()))
    key: Any = (call.in_tree, tuple(avals), static, call.num_args, config.trace_key(), axes_in_scope())
    try:
        traced = traces.get(key)
    except TypeError:  # a static argument, or metadata of a pytree node, is not hashable
        traced = key = None
    if traced is None:
        fun = named_as(call.fun, updated=())(lambda *args, **kwargs: call.call(*args, **kwargs))
        flat = FlatFunction(fun, call.in_tree, with_kwargs=True)
        jaxpr, consts, cells = stage_with_cells(flat, avals, call.debug_info())
        traced = _Traced(close_over_consts(jaxpr), consts, flat.out_tree, cells)
        # Tracers among the constants belong to a trace around this call, so that a later call cannot use them.
        if key is not None and not any(isinstance(c, Tracer) for c in consts):
            traces[key] = traced
    return traced
