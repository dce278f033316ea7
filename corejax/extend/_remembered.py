"""`remembered`, the mark of pure functions whose eager calls an engine may record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from corejax.interpreters.engine import F, engine


@overload
def remembered(fun: F, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> F: ...


@overload
def remembered(*, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Callable[[F], F]: ...


def remembered(fun: object = None, *, ufunc: np.ufunc | None = None, ufunc_of: str = "", numbers: bool = False) -> Any:
    """Mark a pure function, so that the engine may record its eager calls and run each as one program.

    The arguments may be arrays and static values (numbers, strings, None, dtypes, enumerations), and lists and tuples
    of these; the result is an array or a pytree of arrays. A call with other arguments, or one that reads values or
    warns (`warn_user`), runs the function. Do not mark a function that branches on whether values are known or on
    whether two arguments are the same object: its program would compute something else.

    Args:
        fun: the function; equal arguments must give equal results. If omitted, return a decorator.
        ufunc: a NumPy ufunc that computes the same bits for all dtypes for which it returns the same dtype, including
            special values. It runs instead of the program, whatever rules the function's primitives have.
        ufunc_of: the NumPy codes of the first operand's dtypes to which `ufunc` applies (`"fd"`: float32 and float64);
            by default all.
        numbers: whether Python floats and complex numbers are operands of the program rather than constants. This is
            right if only promotion depends on them; calls with different numbers then share one program.

    Returns:
        The function with its name and documentation; `fun` itself if no engine is installed.

    Raises:
        TypeError: `fun` is not callable, or `ufunc` is not a NumPy ufunc.
    """
    if ufunc is not None and not isinstance(ufunc, np.ufunc):
        raise TypeError(f"remembered: ufunc has to be a NumPy ufunc, such as np.copysign, got {ufunc!r}")
    if fun is None:
        return functools.partial(remembered, ufunc=ufunc, ufunc_of=ufunc_of, numbers=numbers)
    if not callable(fun):
        raise TypeError(f"remembered takes a function, got {fun!r} of type {type(fun).__name__}")
    return engine().remember(fun, ufunc, ufunc_of, numbers)
