"""What plugins give arrays and tracers, and what they cannot."""

from __future__ import annotations

from typing import Any

import pytest

import corejax
from corejax import array_methods
from corejax.errors import DuplicateRegistrationError


def test_a_method_is_provided_and_withdrawn() -> None:
    array_methods.provide("acme_rank", property(lambda self: self.ndim))
    try:
        assert corejax.vmap(lambda x: x * x.acme_rank)(corejax.numpy.ones((2, 3))).shape == (2, 3)
        assert corejax.numpy.ones((2, 3)).acme_rank == 2
    finally:
        del array_methods.methods["acme_rank"]
    with pytest.raises(AttributeError, match="acme_rank"):
        _ = corejax.numpy.ones(3).acme_rank


@pytest.mark.parametrize("name", ["shape", "dtype", "__len__", "__iter__"])
def test_the_kernels_own_attributes_are_not_replaced(name: str) -> None:
    with pytest.raises(DuplicateRegistrationError, match=f"{name}.*kernel's own"):
        array_methods.provide(name, lambda self: None)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.vmap, corejax.grad], ids=["array", "vmap", "grad"])
def test_items_are_not_assigned(wrap: Any) -> None:
    def assign(x: Any) -> Any:
        x[0] = 1.0
        return x.sum()

    with pytest.raises(TypeError, match=r"immutable.*x = x\.at\[index\]\.set\(value\)"):
        wrap(assign)(corejax.numpy.ones((2, 3)))
