"""`corejax.fwd_and_bwd`: forward and backward pass of a function as two functions, each compiled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax import vjp
from corejax.extend import fun_name
from corejax.extend.messages import api_boundary
from corejax_xla_backend._jit.jit import jit


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the forward and the backward pass of a function, as in `vjp`, as two functions to call repeatedly.

    Args:
        fun: function of arrays (in pytrees).
        argnums: the positional argument, or several, to differentiate with respect to.
        has_aux: whether `fun` returns `(out, aux)`; aux is not differentiated.
        jitted: whether to compile both functions. (If only `bwd` is compiled, each call of `fwd` makes it compile
            again.)

    Returns:
        `(fwd, bwd)`: `fwd(*args, **kwargs)` returns `(out, residuals)`, or `(out, residuals, aux)`. `bwd(residuals,
        ct)` returns the cotangent of the argument, or a tuple of the cotangents of several arguments.

    Raises:
        TypeError: `fun` is not a function, or `argnums` are not integers; at a call, an argument does not exist.
        ValueError: `argnums` names an argument twice.
    """
    if not callable(fun):
        raise TypeError(f"fwd_and_bwd takes a function, got {fun!r} of type {type(fun).__name__}")
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(isinstance(i, int) for i in numbers):
        raise TypeError(
            f"fwd_and_bwd of {fun_name(fun)}: argnums must be an integer or a sequence of integers, got {argnums!r}"
        )

    def fwd(*args: Any, **kwargs: Any) -> Any:
        places = _places(fun, numbers, len(args))

        def fun_of_differentiated(*differentiated: Any) -> Any:
            full = list(args)
            for i, x in zip(places, differentiated, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        return vjp(fun_of_differentiated, *[args[i] for i in places], has_aux=has_aux)

    def bwd(residuals: Any, ct: Any) -> Any:
        cts = residuals(ct)
        return cts[0] if isinstance(argnums, int) else cts

    name = fun_name(fun)
    fwd.__name__, bwd.__name__ = f"fwd_{name}", f"bwd_{name}"
    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def _places(fun: Callable[..., Any], numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the argnums of a call with `count` positional arguments, without negative numbers."""
    for i in numbers:
        if not -count <= i < count:
            raise TypeError(
                f"fwd_and_bwd of {fun_name(fun)}: argnums has {i}, but the call has {count} positional "
                f"argument{'' if count == 1 else 's'}"
            )
    places = tuple(i % count for i in numbers)
    if len(set(places)) != len(places):
        raise ValueError(f"fwd_and_bwd of {fun_name(fun)}: argnums {tuple(numbers)} names an argument twice")
    return places
