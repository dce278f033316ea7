"""`grad` and `value_and_grad`: the pullback of a scalar output, by `linearize` and `transpose`.

A `Differentiation` holds the options of one transformed function, and is created once for it. `SelectedArguments` holds
the arguments of one call. `jacrev`, `jacfwd` and other functions of plugins use both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from corejax import dtypes, tree
from corejax.arrays.array import Array, as_array
from corejax.arrays.cells import refuse_cells
from corejax.core.avals import Operands, get_aval, is_array_like
from corejax.core.trace import Tracer, escaped, in_scope
from corejax.interpreters.jvp import zeros_like
from corejax.interpreters.linearize import linearize_flat
from corejax.ir.debug_info import DebugInfo, fun_name, named_as
from corejax.messages.source_info import JVP
from corejax.messages.tracebacks import api_boundary
from corejax.transforms.flattening import Aux, Names, arg_names, check_argument, check_function, float0

Argnums = int | Sequence[int]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Differentiation:
    """The options of a call of `grad` or of another differentiating transformation.

    Attributes:
        transform: name of the transformation, for messages.
        fun: the user's function.
        argnums: position, or positions, of the arguments to differentiate with respect to.
        has_aux: whether `fun` returns `(out, aux)`.
        holomorphic: whether `fun` is holomorphic; inputs and output are then complex.
        allow_int: whether integer arguments are allowed.
        forward: whether the derivative is computed in forward mode, which needs real inputs.
    """

    transform: str
    fun: Callable[..., Any]
    argnums: Argnums
    has_aux: bool
    holomorphic: bool
    allow_int: bool = False
    forward: bool = False

    @property
    def fun_name(self) -> str:
        """The function's name, for messages."""
        return fun_name(self.fun)

    def positions(self, count: int) -> tuple[int, ...]:
        """Return `argnums` as non-negative positions among `count` arguments."""
        argnums = self.argnums
        out = []
        for i in (argnums,) if isinstance(argnums, int) else tuple(argnums):
            if not isinstance(i, int):
                raise TypeError(f"{self.transform}: argnums must be an int or a sequence of ints, got {argnums!r}")
            if not -count <= i < count:
                raise TypeError(
                    f"{self.transform} of {self.fun_name} with argnums={argnums!r} needs positional argument {i}, but "
                    f"it was called with {count} positional argument{'' if count == 1 else 's'}"
                )
            out.append(i % count)
        if len(set(out)) != len(out):
            raise ValueError(f"{self.transform} of {self.fun_name}: argnums={argnums!r} names an argument twice")
        return tuple(out)

    def check_input(self, x: object, names: Names, i: int) -> bool:
        """Return True if `x`, leaf number `i`, is differentiated; raise TypeError if it cannot be."""
        if type(x) is Array:
            if not self.holomorphic and x.aval.dtype.kind == "f":  # the frequent case needs no further check
                return True
        else:
            check_argument(self.transform, self.fun, x, names, i)
        dtype = get_aval(x).dtype
        if self.holomorphic and not dtypes.is_complex(dtype):
            raise TypeError(
                f"{self.transform} with holomorphic=True requires inputs with complex dtype, but got {dtype.name} as "
                f"argument {names()[i]} of {self.fun_name}"
            )
        if self.forward and not self.holomorphic and dtypes.is_complex(dtype):
            raise TypeError(
                f"{self.transform} takes real inputs, but argument {names()[i]} of {self.fun_name} is {dtype.name}; "
                "for holomorphic functions pass holomorphic=True, otherwise use jvp"
            )
        if dtypes.is_inexact(dtype):
            return True
        if self.allow_int:
            return False
        allowed = ", or pass allow_int=True (then its gradient is float0)" if not self.forward else ""
        raise TypeError(
            f"{self.transform} requires real- or complex-valued inputs, but argument {names()[i]} of {self.fun_name} "
            f"is {dtypes.short_name(dtype) if dtypes.is_extended(dtype) else dtype.name}. Convert it to a "
            f"floating-point dtype{',' if allowed else ' or'} choose other argnums{allowed}."
        )

    def check_output(self, y: object) -> None:
        """Raise TypeError unless `y` is one real floating-point scalar (a complex one if `holomorphic`)."""
        try:
            aval = get_aval(y)
        except TypeError:
            raise TypeError(
                f"{self.transform} is only defined for functions with one scalar output, but {self.fun_name} "
                f"returns {tree.tree_map(lambda x: get_aval(x) if is_array_like(x) else x, y)!r}"
                + (" (for a pair (out, aux) pass has_aux=True)" if isinstance(y, tuple) else "")
                + (": is its return statement missing?" if y is None else "")
            ) from None
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


class SelectedArguments:
    """The arguments of one call, split into those that `argnums` selects and the others.

    `wanted` are the selected arguments, with their `leaves` and `in_tree`. `active` tells for each leaf whether it is
    differentiated: integers are not.
    """

    __slots__ = ("_args", "_kwargs", "_positions", "active", "asked", "in_tree", "leaves", "wanted")

    def __init__(self, asked: Differentiation, args: tuple[object, ...], kwargs: dict[str, Any]) -> None:
        self.asked, self._args, self._kwargs = asked, args, kwargs
        self._positions = asked.positions(len(args))
        self.wanted = tuple([args[position] for position in self._positions])
        refuse_cells(asked.transform, self.wanted)
        self.leaves, self.in_tree = tree.tree_flatten(self.wanted)
        self.active = [asked.check_input(x, self._names, i) for i, x in enumerate(self.leaves)]

    def _names(self) -> list[str]:
        names = iter(arg_names(self.asked.fun, tree.tree_structure(self._args)))
        each = [[next(names) for _ in tree.tree_leaves(x)] for x in self._args]
        return [name for position in self._positions for name in each[position]]

    def call(self, *wanted: object) -> Any:
        """Call the function with these values in place of the selected arguments."""
        args = list(self._args)
        for position, x in zip(self._positions, wanted, strict=True):
            args[position] = x
        return self.asked.fun(*args, **self._kwargs)

    def select(self, values: Operands) -> Any:
        """Return the values of the selected arguments as a tuple, or the only one if `argnums` is an integer."""
        return values[0] if isinstance(self.asked.argnums, int) else tuple(values)


def differentiated(asked: Differentiation, derivative_of: Callable[[SelectedArguments], object]) -> Callable[..., Any]:
    """Return a function with the arguments of `asked.fun` that calls `derivative_of` with the `SelectedArguments`."""
    check_function(asked.transform, asked.fun)

    @api_boundary
    @named_as(asked.fun)
    def derivative(*args: object, **kwargs: object) -> Any:
        return derivative_of(SelectedArguments(asked, args, kwargs))

    return derivative


def _value_and_grad(arguments: SelectedArguments) -> tuple[Any, Any, Any]:
    """Return the value, aux (or None) and the gradient of one call."""
    asked, aux = arguments.asked, Aux()

    def value_then_aux(*leaves: object) -> list[Any]:
        y = arguments.call(*arguments.in_tree.unflatten(leaves))
        extra: list[Any] = []
        if asked.has_aux:
            y, extra = aux.split(asked.fun, y)
        asked.check_output(y)
        if isinstance(y, Tracer) and not y._trace.alive:
            raise escaped(y, f"the result of function {asked.fun_name}")
        return [y, *extra]

    debug = DebugInfo(asked.fun, asked.transform)
    outs, tape = linearize_flat(in_scope(JVP, value_then_aux), arguments.leaves, arguments.active, debug)
    value = as_array(outs[0])
    tape.outs = tape.outs[:1]
    cts = [None] * len(arguments.leaves) if tape.outs[0] is None else tape.pull([_one(get_aval(value).dtype)])
    grads = arguments.in_tree.unflatten(
        [
            ct if ct is not None else (zeros_like(x) if on else np.zeros(get_aval(x).shape, float0))
            for ct, x, on in zip(cts, arguments.leaves, arguments.active, strict=True)
        ]
    )
    return value, (aux.unflatten(outs[1:]) if asked.has_aux else None), arguments.select(grads)


@functools.cache
def _one(dtype: np.dtype) -> Array:
    return Array(np.ones((), dtype))


def grad(
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of a scalar function.

    Args:
        fun: function that returns one real floating-point scalar (a complex one if `holomorphic`).
        argnums: position, or positions, of the arguments to differentiate with respect to.
        has_aux: if True, `fun` returns `(out, aux)` and the result is `(gradient, aux)`.
        holomorphic: if True, `fun` is holomorphic; inputs and output are complex.
        allow_int: if True, integer arguments are allowed; their gradients are float0 zeros.

    Returns:
        A function with the arguments of `fun`. It returns the gradient, with the structure of the selected argument
        (a tuple of gradients if `argnums` is a sequence).

    Raises:
        TypeError: raised by the call if the output is not a floating-point scalar, an input is an integer, or the
            call lacks an argument that `argnums` names.
        ValueError: raised by the call if `argnums` names an argument twice.
    """

    def result(arguments: SelectedArguments) -> Any:
        _, aux, gradient = _value_and_grad(arguments)
        return (gradient, aux) if has_aux else gradient

    gradient = differentiated(Differentiation("grad", fun, argnums, has_aux, holomorphic, allow_int), result)
    gradient.__doc__ = _doc("Gradient of {} with respect to", fun, argnums)
    return gradient


def value_and_grad(
    fun: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes `(value, gradient)`, or `((value, aux), gradient)` if `has_aux`; see `grad`."""

    def result(arguments: SelectedArguments) -> Any:
        value, aux, gradient = _value_and_grad(arguments)
        return ((value, aux) if has_aux else value), gradient

    asked = Differentiation("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)
    value_and_gradient = differentiated(asked, result)
    value_and_gradient.__doc__ = _doc("Value and gradient of {} with respect to", fun, argnums)
    return value_and_gradient


def _doc(words: str, fun: Callable[..., object], argnums: Argnums) -> str:
    return f"{words.format(fun_name(fun))} positional argument(s) {argnums}.\n\n{fun.__doc__ or ''}"
