"""`corejax.numpy` beside `jax.numpy`: names and signatures; what is still missing is listed."""

from __future__ import annotations

import numpy as np
import pytest

import corejax.numpy as jnp
from tests.signatures import difference, names_in, public

# What is not here: classes without meaning.
ELSEWHERE = {"object_", "character", "flexible"}

# What is still to be written; a name is struck out when it is there.
MISSING: set[str] = set()

# Functions that also take `out` and `where`, to say what to do instead.
MORE = names_in(
    """
    arctan2 atan2 divide equal float_power floor_divide greater greater_equal less less_equal mod not_equal pow power
    remainder true_divide
    """
)


def test_every_name_is_there() -> None:
    theirs = pytest.importorskip("jax").numpy
    absent = {name for name in public(theirs) if not hasattr(jnp, name)}
    assert not absent - ELSEWHERE - MISSING


def test_signatures_are_jaxs() -> None:
    theirs = pytest.importorskip("jax").numpy
    found = {}
    for name in public(theirs):
        ours = getattr(jnp, name, None)
        if ours is None or isinstance(ours, type | np.dtype) or hasattr(ours, "dtype"):
            continue
        ignored = frozenset({"out", "where"} if name in MORE else ())
        found[name] = difference(ours, getattr(theirs, name), ignored)
    assert not {name: text for name, text in found.items() if text}
