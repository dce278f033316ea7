"""Select values by conditions: `select` and `piecewise`."""

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
    """Return, for each element, the choice of the first condition that is true, or the default.

    Args:
        condlist: a sequence of arrays, true where they differ from zero.
        choicelist: a sequence of as many arrays; all arrays broadcast together.
        default: the value where no condition is true, 0 by default.

    Returns:
        An array of the dtype to which the choices and the default promote.

    Raises:
        ValueError: there are no conditions, or the numbers of conditions and choices differ.
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
    """Evaluate a function that is defined piecewise, element by element.

    Args:
        x: the argument.
        condlist: boolean arrays that broadcast to `x`, one for each piece; if several are true, the last one counts.
        funclist: a function of one number, or a number, for each piece. An additional one applies where no condition
            is true; the result is 0 there otherwise.
        args: further positional arguments of the functions.
        kw: further keyword arguments of the functions.

    Returns:
        An array of the dtype of `x`.

    Raises:
        ValueError: the number of functions is neither that of the conditions nor one more.
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
    branch = lax.full(x.shape, 0, np.int32)
    for i, condition in enumerate(conditions, 1):
        holds = to_bool(array_argument("piecewise", condition, i))
        branch = where(lax.broadcast_to(holds, x.shape), i, branch)
    numbers = [array_argument("piecewise", part, 2) for part in parts if not callable(part)]
    numbers = [lax.convert_element_type(number, x.dtype) for number in numbers]
    at = itertools.count()
    branches = [_function(part, x.dtype, args, kw) if callable(part) else _number(next(at)) for part in parts]
    # A conditional, not a selection of values: derivatives must not depend on the branches that are not taken.
    out = vectorize(lambda i, *operands: lax.switch(i, branches, *operands))(branch, x, *numbers)
    return lax.broadcast_to(out, x.shape)


def _function(part: Callable[..., Any], dtype: Any, args: Sequence[Any], kw: dict[str, Any]) -> Callable[..., Any]:
    """Return the branch that calls a function."""
    return lambda x, *numbers: lax.convert_element_type(as_array(part(x, *args, **kw)), dtype)


def _number(index: int) -> Callable[..., Any]:
    """Return the branch that returns a number."""
    return lambda x, *numbers: numbers[index]
