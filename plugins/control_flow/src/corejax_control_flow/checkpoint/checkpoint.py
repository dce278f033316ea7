"""`checkpoint` (`remat`): inner values of a function computed again in the backward pass instead of kept."""

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
    stage,
    tree,
)
from corejax.extend.messages import api_boundary, exact
from corejax.extend.programs import Policy
from corejax.extend.transforms import axes_in_scope, named_as
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
    """A function that computes the same, and whose derivative keeps only its arguments for the backward pass.

    What the backward pass needs of the values inside is computed once more, from the arguments and what the policy
    lets be kept: less memory for more time. Values that are closed over count as arguments. The function is traced
    when it is called, so Python control flow inside depends on static arguments and types only.

    Args:
        fun: function of arrays (in pytrees), positional or by keyword; without it, a decorator.
        prevent_cse: keep the compiler from seeing that the computation is repeated, for it would undo that. Inside
            the body of a `scan` it cannot see that, and False lets it optimise more. A pytree of flags, one for each
            argument, is read as a whole: if one of them is True.
        policy: which values are kept besides, `policy(primitive, *avals, **params) -> bool`; see
            `corejax.checkpoint_policies`. None keeps nothing.
        static_argnums: positional arguments that are passed on as they are. Where all of them can be hashed, calls
            with equal ones share one trace.
        static_argnames: the same of arguments that are given by keyword, by their names.

    Returns:
        The function.

    Raises:
        TypeError: `fun` is not a function or `policy` neither one nor None; at a call, an argument is not an array
            and not static.
        ValueError: at a call, `static_argnums` names an argument that there is not.
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    if not callable(fun):
        raise TypeError(f"checkpoint takes a function, got {fun!r} of type {type(fun).__name__}")
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint of {fun_name(fun)}: policy is a function such as corejax.checkpoint_policies.dots_saveable, "
            f"got {policy!r} of type {type(policy).__name__}"
        )
    numbers, names = _integers(fun, static_argnums), _names(fun, static_argnames)
    traces: dict[Any, _Traced] = {}

    @api_boundary
    @named_as(fun, functools.WRAPPER_ASSIGNMENTS)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = _static(fun, args, numbers)
        named = {name: kwargs[name] for name in names if name in kwargs}
        leaves, in_tree = tree.tree_flatten(
            (
                tuple(x for i, x in enumerate(args) if i not in static),
                {name: x for name, x in kwargs.items() if name not in named},
            ),
        )
        call = _Call(fun, len(args), static, named, in_tree)
        check_arguments("checkpoint", fun, leaves, lambda: call.debug_info().arg_names())
        traced = _trace(call, [get_aval(x) for x in leaves], traces)
        outs = remat_p.bind(
            *traced.consts,
            *leaves,
            differentiated=False,
            jaxpr=traced.closed,
            policy=policy,
            prevent_cse=any(tree.tree_leaves(prevent_cse)),
        )
        return tree.tree_unflatten(traced.out_tree, outs)

    return checkpointed


remat = checkpoint


def _integers(fun: Any, static_argnums: Any) -> tuple[int, ...]:
    given = static_argnums if isinstance(static_argnums, Sequence | set | frozenset) else (static_argnums,)
    try:
        return tuple(operator.index(i) for i in given)
    except TypeError:
        raise TypeError(
            f"checkpoint of {fun_name(fun)}: static_argnums is an integer or several, got {static_argnums!r}"
        ) from None


def _names(fun: Any, static_argnames: Any) -> tuple[str, ...]:
    given = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"checkpoint of {fun_name(fun)}: static_argnames is a name or several, got {static_argnames!r}")
    return names


def _static(fun: Any, args: Sequence[Any], numbers: Sequence[int]) -> dict[int, Any]:
    """Static arguments by position."""
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"checkpoint of {fun_name(fun)}: static_argnums has {i}, but the call has {len(args)} positional "
                "arguments; those given by keyword are traced"
            )
    return {i % len(args): args[i] for i in numbers}


class _Traced(NamedTuple):
    """A traced function; `consts` are the values of the program's leading arguments."""

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: Any


class _Call(NamedTuple):
    """The parts of a call that are not arrays."""

    fun: Callable[..., Any]
    count: int
    static: dict[int, Any]
    named: dict[str, Any]
    in_tree: Any

    def whole(self, args: Sequence[Any], static: dict[int, Any]) -> tuple[Any, ...]:
        """All positional arguments, from those that are traced and those that are not."""
        traced = iter(args)
        return tuple(static[i] if i in static else next(traced) for i in range(self.count))

    def of_traced(self, *args: Any, **kwargs: Any) -> Any:
        """The function of the arguments that are not static."""
        return self.fun(*self.whole(args, self.static), **kwargs, **self.named)

    def debug_info(self) -> DebugInfo:
        """What is traced, for messages."""
        if not self.static and not self.named:
            return DebugInfo(self.fun, "checkpoint", self.in_tree)
        args, kwargs = tree.tree_unflatten(self.in_tree, range(self.in_tree.num_leaves))
        named = dict.fromkeys(self.named, _STATIC)
        leaves, whole = tree.tree_flatten((self.whole(args, dict.fromkeys(self.static, _STATIC)), {**kwargs, **named}))
        return DebugInfo(self.fun, "checkpoint", whole, tuple(i for i, x in enumerate(leaves) if x is not _STATIC))


def _trace(call: _Call, avals: Sequence[ShapedArray], traces: dict[Any, _Traced]) -> _Traced:
    """The program for a call. It is kept, so that equal layers share it and its transformations."""
    static = tuple((i, type(x), exact(x)) for of in (call.static, call.named) for i, x in sorted(of.items()))
    key: Any = (call.in_tree, tuple(avals), static, call.count, config.trace_key(), axes_in_scope())
    try:
        found = traces.get(key)
    except TypeError:  # a static argument, or metadata of a pytree node, cannot be hashed
        found = key = None
    if found is None:
        fun = named_as(call.fun, updated=())(lambda *args, **kwargs: call.of_traced(*args, **kwargs))
        flat = FlatFunction(fun, call.in_tree, with_kwargs=True)
        jaxpr, consts = stage(flat, avals, call.debug_info())
        found = _Traced(close_over_consts(jaxpr), consts, flat.out_tree)
        # Tracers among constants belong to a trace around the call.
        if key is not None and not any(isinstance(c, Tracer) for c in consts):
            traces[key] = found
    return found
