"""Errors of MLIR and XLA about a program name the primitive whose translation it was, and the user's line."""

from __future__ import annotations

import re
import signal
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.errors import BackendError
from corejax.extend import Primitive, abstract_eval_rules, xla_translations
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._xla import compile_errors, compiling

pytest.importorskip("jaxlib")

X = np.float32([1, 2, 3])


def program(name: str, translation: Any) -> Any:
    """A jitted function with a primitive of such a translation rule."""
    primitive = Primitive(name)
    abstract_eval_rules.register(primitive)(lambda x: x)
    xla_translations.register(primitive)(translation)

    def user(x: Any) -> Any:
        return corejax.lax.mul(primitive.bind(corejax.lax.sin(x)), 2.0)  # the line

    return corejax.jit(user)


@pytest.mark.parametrize(
    ("operation", "what"),
    [("stablehlo.nonsense", "unregistered operation 'stablehlo.nonsense'"), ("cholesky", "rank >= 2, got shape 3")],
)
def test_operations_that_are_not_valid(operation: str, what: str) -> None:
    f = program(f"wrong_{operation[:3]}", lambda ctx, avals, vals: ctx.op(operation, *vals, out=avals[0]))
    with pytest.raises(BackendError) as caught:
        f(X)
    message = str(caught.value)
    assert re.search(
        rf"jit of user: the StableHLO of primitive 'wrong_\w+' at {re.escape(__file__)}:\d+ \(user\)", message
    )
    assert what in message and message.endswith("corejax verify wrong_" + operation[:3])
    assert float(corejax.jit(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize(
    ("attrs", "what"), [("!!", "invalid type identifier"), ("} loc(x", "expected ':' followed by")]
)
def test_operations_that_cannot_be_read(attrs: str, what: str) -> None:
    f = program(f"unread_{len(attrs)}", lambda ctx, avals, vals: ctx.op("add", *vals, *vals, out=avals[0], attrs=attrs))
    with pytest.raises(BackendError) as caught:
        f(X)
    message = str(caught.value)
    place = rf"primitive 'unread_\d' at {re.escape(__file__)}:\d+ \(user\)"
    assert re.search(rf"jit of user: the StableHLO of {place} cannot be read: {what}", message)
    assert f'"stablehlo.add"(%1, %1) {{{attrs}}}' in message
    assert message.endswith(f"corejax verify unread_{len(attrs)}")


@pytest.mark.parametrize("operand", [None, 1.0, X])
def test_operands_that_are_no_values(operand: Any) -> None:
    name = f"operand_{type(operand).__name__}"
    f = program(name, lambda ctx, avals, vals: ctx.op("add", *vals, operand, out=avals[0]))
    with pytest.raises(
        TypeError, match=r"ctx.op\('stablehlo.add'\): operand 1 is .* of type .*; pass the rule's own operands"
    ) as caught:
        f(X)
    assert f"the XLA translation rule of primitive '{name}'" in caught.value.__notes__[0]


def test_kernels_that_nobody_registered() -> None:
    f = program("kernel", lambda ctx, avals, vals: ctx.custom_call("acme.missing", *vals, out=avals[0]))
    with pytest.raises(
        BackendError, match=r"'acme.missing' .*, which primitive 'kernel' at .*test_compile_errors.py:\d+"
    ):
        f(X)


def test_what_xla_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(said)

    monkeypatch.setattr(_jaxlib, "compile_module", refusing)
    said = "UNIMPLEMENTED: something"
    with pytest.raises(BackendError, match="jit of <lambda>: XLA could not compile the program: UNIMPLEMENTED"):
        corejax.jit(lambda x: x + 1)(X)
    said = "RESOURCE_EXHAUSTED: memory"
    with pytest.raises(MemoryError, match="the memory does not suffice to compile"):
        corejax.jit(lambda x: x + 1)(X)


def test_what_is_wrong_with_any_flags_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    own = _jaxlib.compile_module
    monkeypatch.setattr(_jaxlib, "compile_module", lambda *args, **more: tried.append(more) or own(*args, **more))
    f = program("once", lambda ctx, avals, vals: ctx.custom_call("acme.nowhere", *vals, out=avals[0]))
    with pytest.raises(BackendError, match=r"acme\.nowhere"):
        f(X)
    assert len(tried) == 1
    with pytest.raises(ValueError, match="xla_cpu_nonsense"):
        corejax.jit(lambda x: x, compiler_options={"xla_cpu_nonsense": True})(X)
    assert len(tried) == 2


def test_locations_that_say_little() -> None:
    error = compile_errors.compile_failure("f", "", ValueError('error: "only/a/path": bad'))
    assert "the StableHLO of primitive 'path' is not valid: bad" in str(error)
    error = compile_errors.compile_failure("f", "", ValueError("error: unknown: bad"))
    assert "could not compile the program" in str(error)


def test_an_interrupt_while_xla_compiles_is_raised_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside of C++ that calls Python back it would end the process."""
    ended: list[bool] = []
    own = compiling.compile_text

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        found = own(*args, **kwargs)
        ended.append(True)
        return found

    f = corejax.jit(lambda x: x + 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test process may ignore interrupts
    try:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(compiling, "compile_text", interrupted)
            f(X)
        assert ended == [True] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(f(X), X + 1)
