"""Constants of programs in and out, forwarded outputs, lists in parts."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.extend import (
    ShapedArray,
    bind_consts,
    close_over_consts,
    inline_closed,
    merge_lists,
    partition_list,
    split_list,
    stage_closed,
)
from corejax.extend.programs import check_jaxpr
from corejax.programs.partial_eval_jaxpr import without_forwarded
from tests.kernel.toys import add, cos, mul

pytestmark = pytest.mark.usefixtures("toys")
F = np.float32
X = np.array([0.5, 1.0, -2.0], F)
Y = np.array([1.0, -1.0, 3.0], F)
VEC = ShapedArray((3,), F)
CONST = cj.Array(np.array([2.0, 3.0, 4.0], F))


def test_constants_out_and_in():
    closed = stage_closed(lambda x, y: [mul(x, CONST), y], [VEC, VEC])
    opened = close_over_consts(closed.jaxpr)
    assert opened.consts == [] and len(opened.in_avals) == 3
    back = bind_consts(opened, closed.consts)
    assert str(back) == str(closed)
    check_jaxpr(bind_consts(opened, [CONST, X]))
    np.testing.assert_array_equal(np.asarray(inline_closed(bind_consts(opened, [Y, X]), [X])[0]), X * Y)
    with pytest.raises(TypeError, match=r"value 0 is f32\[\], the program's argument is f32\[3\]"):
        bind_consts(opened, [F(1)])
    with pytest.raises(TypeError, match="4 values for a program of 3 arguments"):
        bind_consts(opened, [X] * 4)


def test_without_forwarded():
    def f(x, y):
        a = add(x, y)
        return [x, a, y, a, cos(a), 2.0]

    smaller, plan = without_forwarded(stage_closed(f, [VEC, VEC]))
    assert plan == [(True, 0), (False, 0), (True, 1), (False, 0), (False, 1), (False, 2)]
    assert len(smaller.out_avals) == 3


def test_lists():
    flags, items = [True, False, True], ["a", "b", "c"]
    assert partition_list(flags, items) == (["b"], ["a", "c"])
    assert merge_lists(flags, ["b"], ["a", "c"]) == items
    assert split_list(items, [1, 0]) == [["a"], [], ["b", "c"]]
    with pytest.raises(ValueError, match="3 flags, 2 of them set, were given 2 and 1 items"):
        merge_lists(flags, ["a", "b"], ["c"])
    with pytest.raises(ValueError, match=r"3 items cannot be cut into pieces of lengths \[2, 2\]"):
        split_list(items, [2, 2])
    with pytest.raises(ValueError, match="zip"):
        partition_list(flags, items[:2])
