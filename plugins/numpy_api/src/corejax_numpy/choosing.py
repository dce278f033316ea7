"""Values by conditions: the first that holds (`select`), a function for each (`piecewise`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import as_array
from corejax_lax_basic import lax
from corejax_numpy.arguments import (
    array_argument,
    promote_dtypes,
    sequence,
    to_bool,
)
from corejax_numpy.creation import asarray
from corejax_numpy.elementwise import where
from corejax_numpy.mapping import vectorize


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Of each element the choice whose condition is the first to hold, or the default.

    Args:
        condlist: arrays, true where they differ from zero.
        choicelist: as many arrays; all broadcast together.
        default: the value where no condition holds.

    Returns:
        An array of the dtype that choices and default promote to.

    Raises:
        ValueError: there are no conditions, or not as many choices.
    """
    condlist, choicelist = sequence("select", condlist, "condlist"), sequence("select", choicelist, "choicelist")
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: there are {len(condlist)} conditions for {len(choicelist)} choices")
    if not condlist:
        raise ValueError("select: give at least one condition")
    conditions = [array_argument("select", c, i) for i, c in enumerate(condlist)]
    *choices, out = promote_dtypes("select", *choicelist, default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = where(condition, choice, out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """A function of elements that is defined by parts.

    Args:
        x: the argument.
        condlist: for each part where it holds, a boolean array that broadcasts to `x`; of several the last one counts.
        funclist: for each part a function of one number, or a number; one more is the rest's, which is 0 otherwise.
        args: further arguments of the functions.
        kw: further keyword arguments of theirs.

    Returns:
        An array of the dtype of `x`.

    Raises:
        ValueError: there are neither as many functions as conditions nor one more.
    """
    x = array_argument("piecewise", x)
    if not isinstance(condlist, list | tuple):
        condlist = asarray(condlist)
        condlist = [condlist] if condlist.ndim <= x.ndim else [condlist[i] for i in range(len(condlist))]
    conditions = list(condlist)
    parts = sequence("piecewise", funclist, "funclist")
    if len(parts) not in (len(conditions), len(conditions) + 1):
        n = len(conditions)
        raise ValueError(f"piecewise: {n} conditions go with {n} or {n + 1} functions, got {len(parts)}")
    parts.insert(0, parts.pop() if len(parts) > len(conditions) else 0)
    which = lax.full(x.shape, 0, np.int32)
    for i, condition in enumerate(conditions, 1):
        holds = to_bool(array_argument("piecewise", condition, i))
        which = where(lax.broadcast_to(holds, x.shape), i, which)
    numbers = [array_argument("piecewise", part, 2) for part in parts if not callable(part)]
    numbers = [lax.convert_element_type(number, x.dtype) for number in numbers]
    at = itertools.count()
    branches = [_function(part, x.dtype, args, kw) if callable(part) else _number(next(at)) for part in parts]
    # A conditional, not a choice of values: what is not taken must not count in derivatives.
    out = vectorize(lambda which, *operands: lax.switch(which, branches, *operands))(which, x, *numbers)
    return lax.broadcast_to(out, x.shape)


def _function(part: Callable[..., Any], dtype: Any, args: Sequence[Any], kw: dict[str, Any]) -> Callable[..., Any]:
    """The branch of a function."""
    return lambda x, *numbers: lax.convert_element_type(as_array(part(x, *args, **kw)), dtype)


def _number(index: int) -> Callable[..., Any]:
    """The branch of a number."""
    return lambda x, *numbers: numbers[index]
