"""What plugins give arrays and tracers, and what they cannot."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import corejax
from corejax.core import array_methods
from corejax.errors import DuplicateRegistrationError, PluginError
from corejax.extend import hookimpl
from corejax.extend.plugins import isolated_plugins
from corejax.plugins._records import PluginRecord


def test_a_method_is_provided_and_withdrawn() -> None:
    array_methods.provide("acme_rank", property(lambda self: self.ndim))
    try:
        assert corejax.vmap(lambda x: x * x.acme_rank)(corejax.numpy.ones((2, 3))).shape == (2, 3)
        assert corejax.numpy.ones((2, 3)).acme_rank == 2
    finally:
        del array_methods.methods["acme_rank"]
    with pytest.raises(AttributeError, match="acme_rank"):
        _ = corejax.numpy.ones(3).acme_rank


def test_what_no_plugin_provides_is_pythons_error_once_all_are_loaded() -> None:
    """Reading attributes is fast without `__getattr__`; a manager that has not loaded its plugins is asked again."""
    corejax.plugins.plugins()
    assert "__getattr__" not in vars(array_methods.ArrayMethods)
    asked: list[str] = []

    def read(x: Any) -> Any:
        with pytest.raises(AttributeError, match=r"^'JVPTracer' object has no attribute 'acme_rank'$") as caught:
            asked.append(x.acme_rank)
        assert caught.value.name == "acme_rank" and type(caught.value.obj) is type(x)
        return x

    corejax.grad(read)(1.0)

    class Acme:
        @staticmethod
        @hookimpl
        def corejax_provide_array_methods() -> dict[str, Any]:
            return {"acme_rank": property(lambda x: x.ndim)}

    with isolated_plugins(lambda: [PluginRecord.of_object(Acme, "acme", None)]):
        corejax.grad(lambda x: asked.append(x.acme_rank) or x)(1.0)
        assert asked == [0]
    corejax.grad(read)(1.0)
    assert asked == [0] and "__getattr__" not in vars(array_methods.ArrayMethods)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that is imported when what is in it is needed."""
    module = ModuleType("acme_methods")
    module.acme_rank = property(lambda self: self.ndim)  # type: ignore[attr-defined]
    module.METHODS = {"acme_twice": lambda self: self + self, "acme_unit": 3}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_methods", module)
    yield module
    for name in [n for n in array_methods.methods if n.startswith("acme")]:
        del array_methods.methods[name]


def test_a_method_may_be_told_by_its_place(acme: Any) -> None:
    x = corejax.numpy.ones((2, 3))
    array_methods.provide("acme_rank", "acme_methods:acme_rank")
    for name in ("acme_twice", "acme_unit"):
        array_methods.provide(name, "acme_methods:METHODS")
    assert x.acme_rank == 2 and corejax.vmap(lambda x: x * x.acme_rank)(x).sum() == 6
    assert x.acme_twice().sum() == 12
    assert corejax.Array.acme_twice is acme.METHODS["acme_twice"]
    assert x.acme_unit == 3
    assert array_methods.methods["acme_rank"] == "acme_methods:acme_rank"
    del array_methods.methods["acme_rank"]
    with pytest.raises(AttributeError, match="acme_rank"):
        _ = x.acme_rank


def test_a_method_that_is_not_at_its_place(acme: Any) -> None:
    x = corejax.numpy.ones(3)
    array_methods.provide("acme_three", "acme_methods:METHODS")
    with pytest.raises(PluginError, match=r"array method 'acme_three' of .* does not exist at acme_methods:METHODS"):
        x.acme_three()
    acme.METHODS["acme_three"] = lambda self: 3
    assert x.acme_three() == 3
    array_methods.provide("acme_four", "no_such_module:four")
    with pytest.raises(
        PluginError,
        match=r"array method 'acme_four' of .* cannot be imported from no_such_module:four: ModuleNotFoundError: ",
    ):
        x.acme_four()
    with pytest.raises(
        ValueError, match=r"array method 'acme_five': an import path has the form 'module:object', got 'acme_methods'"
    ):
        array_methods.provide("acme_five", "acme_methods")


@pytest.mark.parametrize("name", ["shape", "dtype", "__len__", "__iter__"])
def test_the_kernels_own_attributes_are_not_replaced(name: str) -> None:
    with pytest.raises(DuplicateRegistrationError, match=f"{name}.*kernel's own"):
        array_methods.provide(name, lambda self: None)


@pytest.mark.parametrize("name", ["class", "two words", "_private", "__call__", ""])
def test_names_that_nobody_could_write(name: str) -> None:
    with pytest.raises(ValueError, match=f"is a public word or one of Python's operators, got '{name}'"):
        array_methods.provide(name, lambda self: None)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.vmap, corejax.grad], ids=["array", "vmap", "grad"])
def test_items_are_not_assigned(wrap: Any) -> None:
    def assign(x: Any) -> Any:
        x[0] = 1.0
        return x.sum()

    with pytest.raises(TypeError, match=r"immutable.*x = x\.at\[index\]\.set\(value\)"):
        wrap(assign)(corejax.numpy.ones((2, 3)))
