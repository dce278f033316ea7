"""A row of a table is a primitive with all of its rules, and says where it stands."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import abstract_eval_rules, impl_rules, jvp_rules, vmap_rules
from corejax_lax_basic._base.derivatives import tangents
from corejax_lax_basic._base.rows import ROWS
from corejax_lax_basic._base.type_rules import FLOAT
from corejax_lax_basic.elementwise._family import unary

cube, cube_p = unary(
    "test_rows_cube", lambda x: x**3, FLOAT, None, tangents(lambda t, x: t * (3 * x * x)), "`x ** 3`; floating-point."
)


def test_a_row_is_enough() -> None:
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(cube(x), [0, 1, 8])
    np.testing.assert_array_equal(corejax.vmap(corejax.grad(cube))(x), [0, 3, 12])
    assert cube.__doc__ == cube_p.doc == "`x ** 3`; floating-point."
    with pytest.raises(TypeError, match=r"test_rows_cube does not accept dtype int32; expects a floating-point dtype"):
        cube(jnp.arange(3))
    with pytest.raises(TypeError, match="test_rows_cube takes 1 operand, got 2"):
        cube_p.bind(x, x)


def test_a_row_says_where_it_stands() -> None:
    end = test_a_row_is_enough.__code__.co_firstlineno
    rules = [
        registry.rule_of(cube_p).provenance for registry in (impl_rules, abstract_eval_rules, jvp_rules, vmap_rules)
    ]
    for found in (cube_p.provenance, *rules):
        assert found.module == cube.__module__ == __name__
        assert found.file == __file__ and end - 6 < found.line < end


def test_what_rows_define_is_in_lax() -> None:
    for name in ("sin", "mul_p", "bitwise_and", "and_p", "reduce_sum", "cummax_p", "argmax"):
        assert getattr(lax, name) is ROWS[name]
    assert lax.bitwise_and.__name__ == "bitwise_and"
    assert lax.conj(1.0).dtype == np.complex64, "takes real numbers, unlike the row's"
