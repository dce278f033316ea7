"""`grad` and `value_and_grad`: the pullback of one scalar, by `linearize` and `transpose`.

`Differentiation` is what was asked for, made once for a transformed function; the Jacobians ask the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax import dtypes, tree
from corejax.array import Array, as_array
from corejax.avals import get_aval, is_array_like
from corejax.interpreters.debug_info import DebugInfo, fun_name, named_as
from corejax.interpreters.jvp import zeros_like
from corejax.interpreters.linearize import linearize_flat
from corejax.interpreters.transposition import pull
from corejax.source_info import JVP
from corejax.trace import Tracer, escaped, in_scope
from corejax.tracebacks import api_boundary
from corejax.transforms.flattening import Aux, arg_names, check_argument, check_function, float0

Argnums = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class Differentiation:
    """What `grad` or another transformation was asked for.

    Attributes:
        transform: its name, for messages.
        fun: the user's function.
        argnums: positional argument, or several, to differentiate by.
        has_aux: whether `fun` returns `(out, aux)`.
        holomorphic: whether it is holomorphic: complex inputs and output.
        allow_int: whether integer arguments are allowed.
    """

    transform: str
    fun: Callable[..., Any]
    argnums: Argnums
    has_aux: bool
    holomorphic: bool
    allow_int: bool

    @property
    def fun_name(self) -> str:
        """The function's name, for messages."""
        return fun_name(self.fun)

    def positions(self, count: int) -> tuple[int, ...]:
        """`argnums` as non-negative positions among `count` arguments."""
        argnums = self.argnums
        if type(argnums) is int and 0 <= argnums < count:
            return (argnums,)
        wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        out = []
        for i in wanted:
            if not isinstance(i, int):
                raise TypeError(f"{self.transform}: argnums is an integer or a sequence of integers, got {argnums!r}")
            if not -count <= i < count:
                raise TypeError(
                    f"{self.transform} of {self.fun_name} with argnums={argnums!r} needs positional argument {i}, but "
                    f"it was called with {count} positional argument{'' if count == 1 else 's'}"
                )
            out.append(i % count)
        if len(set(out)) != len(out):
            raise ValueError(f"{self.transform} of {self.fun_name}: argnums={argnums!r} names an argument twice")
        return tuple(out)

    def check_input(self, x: Any, name: Callable[[], str]) -> bool:
        """Whether a leaf is differentiated; refuses what cannot be."""
        if type(x) is Array:
            if not self.holomorphic and x.aval.dtype.kind == "f":  # at once for what is frequent
                return True
        else:
            check_argument(self.transform, self.fun, x, name)
        dtype = get_aval(x).dtype
        if self.holomorphic and not dtypes.is_complex(dtype):
            raise TypeError(
                f"{self.transform} with holomorphic=True requires inputs with complex dtype, but got {dtype.name} as "
                f"argument {name()} of {self.fun_name}"
            )
        if dtypes.is_inexact(dtype):
            return True
        if self.allow_int:
            return False
        allowed = ", or pass allow_int=True (then its gradient is float0)" if self.transform != "jacfwd" else ""
        raise TypeError(
            f"{self.transform} requires real- or complex-valued inputs, but argument {name()} of {self.fun_name} is "
            f"{dtypes.short_name(dtype) if dtypes.is_extended(dtype) else dtype.name}. Convert it to a floating-point "
            f"dtype{',' if allowed else ' or'} choose other argnums{allowed}."
        )

    def check_output(self, y: Any) -> None:
        """Refuse what is not one real floating-point scalar (complex, where the function is holomorphic)."""
        if type(y) is not Array and not isinstance(y, Tracer):
            try:
                get_aval(y)
            except TypeError:
                raise TypeError(
                    f"{self.transform} is only defined for functions with one scalar output, but {self.fun_name} "
                    f"returns {tree.tree_map(_type_of, y)!r}"
                    + (" (for a pair (out, aux) pass has_aux=True)" if isinstance(y, tuple) else "")
                    + (": is its return statement missing?" if y is None else "")
                ) from None
        aval = get_aval(y)
        if aval.shape != ():
            raise TypeError(
                f"{self.transform} is only defined for scalar-output functions, but the output of {self.fun_name} has "
                f"shape {aval.shape}. Use jacrev or jacfwd, or reduce the output to a scalar."
            )
        if dtypes.is_complex(aval.dtype) if self.holomorphic else dtypes.is_float(aval.dtype):
            return
        returned = f"output, but {self.fun_name} returns {aval.dtype.name}"
        if self.holomorphic:
            raise TypeError(f"{self.transform} with holomorphic=True needs a complex {returned}")
        advice = (
            "For holomorphic functions pass holomorphic=True; otherwise use vjp."
            if dtypes.is_complex(aval.dtype)
            else "Its derivative is zero everywhere; return a floating-point value."
        )
        raise TypeError(f"{self.transform} needs a real floating-point {returned}. {advice}")


class _Chosen:
    """The arguments that a function is differentiated by, taken apart.

    Attributes:
        args: all positional arguments of the call.
        positions: which of them are chosen.
        leaves: the chosen ones' leaves, in order.
    """

    __slots__ = ("_parts", "args", "leaves", "positions")

    def __init__(self, args: Sequence[Any], positions: tuple[int, ...]) -> None:
        self.args = args
        self.positions = positions
        self.leaves: list[Any] = []
        self._parts: list[tuple[Any, int]] = []  # of each chosen argument: its treedef (None: a leaf), number of leaves
        for position in positions:
            x = args[position]
            new, treedef = ([x], None) if type(x) is Array else tree.tree_flatten(x)
            self.leaves += new
            self._parts.append((treedef, len(new)))

    def rebuilt(self, leaves: Sequence[Any]) -> list[Any]:
        """The chosen arguments, or what has their structures, from such leaves."""
        out = []
        start = 0
        for treedef, count in self._parts:
            part = leaves[start] if treedef is None else tree.tree_unflatten(treedef, leaves[start : start + count])
            out.append(part)
            start += count
        return out

    def args_with(self, leaves: Sequence[Any]) -> list[Any]:
        """All positional arguments, the chosen ones made of these leaves."""
        args = list(self.args)
        for position, x in zip(self.positions, self.rebuilt(leaves), strict=True):
            args[position] = x
        return args


def leaf_names_at(fun: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> list[str]:
    """Names of the leaves of the arguments at these positions."""
    names = arg_names(fun, tree.tree_structure(args))
    counts = [tree.tree_structure(a).num_leaves for a in args]
    starts = [sum(counts[:i]) for i in range(len(args))]
    return [name for p in positions for name in names[starts[p] : starts[p] + counts[p]]]


def _value_and_grad(asked: Differentiation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Value, aux (or None) and gradient of one call."""
    fun = asked.fun
    chosen = _Chosen(args, asked.positions(len(args)))
    active = [
        asked.check_input(x, lambda i=i: leaf_names_at(fun, args, chosen.positions)[i])  # type: ignore[misc]
        for i, x in enumerate(chosen.leaves)
    ]
    aux = Aux()

    def value_then_aux(*leaves: Any) -> list[Any]:
        y = fun(*chosen.args_with(leaves), **kwargs)
        extra: list[Any] = []
        if asked.has_aux:
            if not isinstance(y, tuple | list) or len(y) != 2:
                raise TypeError(
                    f"with has_aux=True function {fun_name(fun)} returns a two-element tuple (out, aux), got {y!r}"
                )
            y, value = y
            extra = aux.flatten(value)
        asked.check_output(y)
        if isinstance(y, Tracer) and not y._trace.alive:
            raise escaped(y, f"the result of function {fun_name(fun)}")
        return [y, *extra]

    debug = DebugInfo(fun, asked.transform)
    outs, tape = linearize_flat(in_scope(JVP, value_then_aux), chosen.leaves, active, debug)
    value = as_array(outs[0])
    tape.outs = tape.outs[:1]
    cts = [None] * len(active) if tape.outs[0] is None else pull(tape, [_one(get_aval(value).dtype)])
    grads = chosen.rebuilt(
        [
            ct if ct is not None else (zeros_like(x) if on else np.zeros(get_aval(x).shape, float0))
            for ct, x, on in zip(cts, chosen.leaves, active, strict=True)
        ]
    )
    gradient = grads[0] if isinstance(asked.argnums, int) else tuple(grads)
    return value, (aux.unflatten(outs[1:]) if asked.has_aux else None), gradient


@functools.cache
def _one(dtype: np.dtype[Any]) -> Array:
    return Array(np.ones((), dtype))


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Args:
        fun: function whose output is one real floating-point scalar (complex with `holomorphic`).
        argnums: positional argument, or several, to differentiate by.
        has_aux: `fun` returns `(out, aux)`; the result is then `(gradient, aux)`.
        holomorphic: `fun` is holomorphic: complex inputs and output.
        allow_int: integer arguments are allowed; their gradients are float0 zeros.

    Returns:
        A function with the arguments of `fun` that gives the gradient, of the structure of the chosen argument
        (a tuple of them where `argnums` is a sequence).

    Raises:
        TypeError: the output is not a scalar or not floating-point, an input is an integer, or the call has no
            argument of a wanted position.
        ValueError: `argnums` names an argument twice.
    """
    check_function("grad", fun)
    asked = Differentiation("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @api_boundary
    @named_as(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, aux, out = _value_and_grad(asked, args, kwargs)
        return (out, aux) if has_aux else out

    gradient.__doc__ = (
        f"Gradient of {fun_name(fun)} with respect to positional argument(s) {argnums}.\n\n{fun.__doc__ or ''}"
    )
    return gradient


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """As `grad`; the result is `(value, gradient)`, or `((value, aux), gradient)` with `has_aux`."""
    check_function("value_and_grad", fun)
    asked = Differentiation("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)

    @api_boundary
    @named_as(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        value, aux, out = _value_and_grad(asked, args, kwargs)
        return ((value, aux), out) if has_aux else (value, out)

    value_and_gradient.__doc__ = (
        f"Value and gradient of {fun_name(fun)} by positional argument(s) {argnums}.\n\n{fun.__doc__ or ''}"
    )
    return value_and_gradient


def _type_of(x: Any) -> Any:
    """The type of an array, which an error shows in place of the value; other leaves as they are."""
    return get_aval(x) if is_array_like(x) else x
