"""The code of the first matrix products: which programs have it made, once, and nothing changes by it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax_xla_backend._xla import first_products


def ones(*shape: int, dtype: str = "float32") -> cj.ShapedArray:
    return cj.ShapedArray(shape, np.dtype(dtype))


WITH: dict[str, tuple[Callable[..., Any], tuple[cj.ShapedArray, ...]]] = {
    "transposed": (lambda a, b: a.T @ b, (ones(16, 8), ones(16, 4))),
    "batched": (lambda a, b: jnp.einsum("bji,bjk->bik", a, b), (ones(2, 8, 8), ones(2, 8, 8))),
    "16 bits": (lambda a, b: jnp.tensordot(a, b, (0, 0)), (ones(8, 8, dtype="bfloat16"), ones(8, 8, dtype="bfloat16"))),
    "gradient": (cj.grad(lambda a, b: jnp.sum((b @ a) ** 2)), (ones(16, 8), ones(32, 16))),
    "convolution": (lambda a, b: lax.conv(a, b, (1, 1), "SAME"), (ones(1, 2, 8, 8), ones(2, 2, 3, 3))),
}
WITHOUT: dict[str, tuple[Callable[..., Any], tuple[cj.ShapedArray, ...]]] = {
    "plain": (lambda a, b: a @ b, (ones(16, 8), ones(8, 4))),
    "small": (lambda a, b: a.T @ b, (ones(2, 3), ones(2, 4))),
    "outer": (lambda a, b: jnp.tensordot(a, b, 0), (ones(64), ones(64))),
    "doubles": (lambda a, b: a.T @ b, (ones(16, 8, dtype="float64"), ones(16, 4, dtype="float64"))),
    "no product": (lambda a: jnp.sin(a.T), (ones(16, 8),)),
    "empty": (lambda a, b: a.T @ b, (ones(16, 0), ones(16, 4))),
}


@pytest.mark.parametrize("name", [*WITH, *WITHOUT])
def test_which_programs_need_it(name: str) -> None:
    function, types = (WITH | WITHOUT)[name]
    with cj.enable_x64(True):
        jaxpr = cj.make_jaxpr(function)(*types).jaxpr
    assert first_products.needs_products(jaxpr) == (name in WITH)


def test_it_is_made_once_by_a_thread_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Thread(threading.Thread):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr(threading, "Thread", Thread)
    monkeypatch.setattr(first_products, "_cores", lambda: 2)
    monkeypatch.setattr(first_products, "_begun", False)
    x = np.ones((8, 16), np.float32)
    cj.jit(jnp.sin)(x)
    assert not started
    for i in range(2):
        np.testing.assert_array_equal(cj.jit(lambda x, i=i: x.T @ x + i)(x), x.T @ x + i)
    [thread] = started
    assert thread.daemon and thread.name == "corejax-products"
    thread.join(60)
    assert not thread.is_alive()


def test_a_program_is_compiled_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(first_products, "_cores", lambda: 2)
    monkeypatch.setattr(first_products, "_begun", False)
    function, types = WITH["convolution"]
    first_products.prepare(cj.make_jaxpr(function)(*types).jaxpr, cj.devices()[0])
    assert first_products._begun


def test_what_goes_wrong_there_is_nobody_s(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refused(*_: Any) -> Any:
        raise RuntimeError("no memory")

    monkeypatch.setattr(first_products._jaxlib, "put", refused)
    first_products._multiply(cj.devices()[0])
    assert not capfd.readouterr().err
