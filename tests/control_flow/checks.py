"""What the tests of loops share: checked jaxprs, their equations, comparisons and messages."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax.extend.programs import check_jaxpr, subjaxprs
from corejax.tree_util import tree_leaves, tree_structure


def jaxpr(fun, *args):
    """The program of a function, type-checked."""
    closed = corejax.make_jaxpr(fun)(*args)
    check_jaxpr(closed)
    return closed


def equations(program, name):
    """The equations of a primitive in a program and in those inside it."""
    for eqn in program.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for sub in subjaxprs(eqn.params):
            yield from equations(sub, name)


def check(got, want):
    """The same structure and, to rounding, the same numbers."""
    assert tree_structure(got) == tree_structure(want)
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


def message(error, fun, *args):
    """The text of the error that a call raises."""
    with pytest.raises(error) as caught:
        fun(*args)
    return str(caught.value)
