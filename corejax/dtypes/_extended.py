"""Extended dtypes: elements that are not numbers, but are made of them."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from corejax.dtypes._names import FROM_SHORT_NAMES, KINDS, SHORT_NAMES, DType, dtype, short_name
from corejax.messages import source_info

_extended: dict[DType, str] = {}  # with how one gets at the numbers


class extended(np.generic):
    """What the elements of extended dtypes are, for `issubdtype`."""


class prng_key(extended):
    """What keys of random generators are, for `issubdtype`."""


def extended_dtype(
    name: str, *, base: Any, shape: tuple[int, ...], numbers: str = "", kind: type[extended] = extended
) -> DType:
    """A dtype of elements that are not numbers, each held as an array of numbers: keys of random generators, say.

    Such arrays are indexed, joined, batched and looped over as any others, and no arithmetic takes them. On the host
    they are NumPy arrays of a structured dtype with one field; programs are compiled for `physical_aval`.

    Args:
        name: as it is printed: `key<fry>`.
        base: dtype of the numbers.
        shape: how many make an element; at least one axis, with at least one number.
        numbers: for messages, how one gets at the numbers: `corejax.random.key_data(x)`.
        kind: what `issubdtype` says it is.

    Returns:
        The dtype; the same one when it is asked for again.

    Raises:
        ValueError: the name is that of another dtype, or the shape is of no numbers.
    """
    field = (name, dtype(base), tuple(shape))
    found = FROM_SHORT_NAMES.get(name)
    if found is None:
        if not shape or not all(shape):
            raise ValueError(f"extended_dtype: an element of {name} is at least one number, got shape {shape}")
        if not re.fullmatch(r"[A-Za-z]\w*<\w+>", name):
            raise ValueError(f"extended_dtype: a name is written as key<fry> is, got {name!r}")
        # Its name is the kind's, by which libraries that check types know it; pickles look it up by `__qualname__`.
        scalar_type = type(kind.__name__, (np.void, kind), {"__module__": __package__, "__qualname__": name})
        vars(sys.modules[__package__])[name] = scalar_type
        found = np.dtype((scalar_type, [field]))
        SHORT_NAMES[found], KINDS[found], FROM_SHORT_NAMES[name] = name, "x", found
        _extended[found] = numbers
    if found != np.dtype([field]):
        base, inner = found[name].subdtype or (None, ())
        raise ValueError(f"extended_dtype: {name} is known as {base}{list(inner)}, got {field[1]}{list(shape)}")
    return found


def is_extended(d: Any) -> bool:
    """Whether the dtype is one that `extended_dtype` made."""
    return isinstance(d, np.dtype) and d.names is not None and d in _extended


def has_extended() -> bool:
    """Whether there are any."""
    return bool(_extended)


def no_numbers(d: DType, what: str) -> TypeError:
    """The error for who takes elements of an extended dtype for numbers.

    Args:
        d: the dtype.
        what: what was asked of them: "numpy.asarray".
    """
    advice = _extended[d]
    head = source_info.by_caller() or f"{what}: "
    return TypeError(
        f"{head}elements of dtype {short_name(d)} are not numbers"
        + (f"; {advice} has those that they are made of" if advice else "")
    )


def element_of(d: DType) -> tuple[DType, tuple[int, ...]]:
    """Dtype and shape of the numbers that make an element of an extended dtype."""
    base, shape = d[0].subdtype  # type: ignore[misc]
    return base, shape
