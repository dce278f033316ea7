"""Who raised something: notes on functions of users, and the frames that led to the library."""

from __future__ import annotations

from typing import Any

import pytest

import corejax
import corejax.numpy as jnp
from corejax.extend import Primitive, jvp_rules
from corejax.extend.messages import attributed_rule, not_of_rule, note_origin, user_frames
from corejax.messages.source_info import capture_source

called_p = Primitive("attribution.called", impl=lambda x: x, abstract_eval=lambda x: x)


def test_a_note_on_a_users_function() -> None:
    error = ValueError("no")
    note_origin(error, called_p, "the callback 'f'")
    note_origin(error, called_p, "another one")
    (note,) = error.__notes__
    assert note.startswith(f"This came out of the callback 'f', called at {__file__}:")
    assert attributed_rule(error) == ("attribution.called", None)


def test_the_line_may_be_another_one() -> None:
    def elsewhere() -> Any:
        return capture_source()

    error = ValueError("no")
    note_origin(error, called_p, "it", elsewhere())
    assert "(elsewhere)" in error.__notes__[0]


def test_an_exception_that_takes_no_attributes() -> None:
    class Closed(Exception):
        __slots__ = ()

    error = Closed()
    note_origin(error, called_p, "it")
    assert "This came out of it" in error.__notes__[0]


def test_frames_of_users() -> None:
    found: list[Any] = []

    def within(x: Any) -> Any:
        found.extend((user_frames(), user_frames(filtered=False)))
        return x

    corejax.make_jaxpr(within)(1.0)
    own, every = ([frame.f_code.co_name for frame in frames] for frames in found)
    assert own[:2] == ["within", "test_frames_of_users"]
    assert every[0] == "within" and every.index("test_frames_of_users") > 1


def test_what_a_user_did_is_no_rules_fault() -> None:
    x = jnp.ones(3)
    x.delete()
    for run in (
        lambda: corejax.grad(lambda w: jnp.sum(w * x))(jnp.ones(3)),
        lambda: corejax.grad(lambda w: jnp.sum(jnp.sin(w)))(x),
        lambda: corejax.vmap(lambda w: w * x)(jnp.ones((2, 3))),
    ):
        with pytest.raises(RuntimeError, match="deleted") as caught:
            run()
        assert not getattr(caught.value, "__notes__", ())
        assert attributed_rule(caught.value) is None


def raises(*args: Any) -> Any:
    raise KeyError("the user's own")


def test_what_a_users_rule_raises() -> None:
    looping = lambda x: corejax.lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)
    mapped = corejax.custom_batching.custom_vmap(lambda x: x)
    mapped.def_vmap(raises)
    backwards = corejax.custom_vjp(lambda x: x)
    backwards.defvjp(lambda x: (x, None), raises)
    for run, error in (
        (lambda: corejax.grad(looping)(1.0), ValueError),
        (lambda: corejax.jit(corejax.grad(looping))(1.0), ValueError),
        (lambda: corejax.grad(backwards)(1.0), KeyError),
        (lambda: corejax.jit(corejax.grad(backwards))(1.0), KeyError),
        (lambda: corejax.vmap(mapped)(jnp.ones(3)), KeyError),
    ):
        with pytest.raises(error) as caught:
            run()
        assert not getattr(caught.value, "__notes__", ())


def test_a_rule_that_looks_at_a_traced_value() -> None:
    looks = Primitive("attribution.looks", impl=lambda x: x, abstract_eval=lambda x: x)

    @jvp_rules.register(looks)
    def looks_jvp(primals: Any, tangents: Any) -> Any:
        return looks.bind(*primals), tangents[0] if primals[0] > 0 else tangents[0] * 2

    assert corejax.grad(looks.bind)(-1.0) == 2
    with pytest.raises(corejax.errors.TracerBoolConversionError) as caught:
        corejax.jit(corejax.grad(lambda x: looks.bind(x)))(1.0)
    (note,) = caught.value.__notes__
    assert note.startswith("This came out of the JVP rule of primitive 'attribution.looks', from module ")
    assert note.count("test_attribution.py:") == 2
    with pytest.raises(corejax.errors.TracerBoolConversionError) as caught:
        corejax.jit(corejax.vmap(lambda x: jnp.sin(x) if x > 0 else x))(jnp.ones(3))
    assert not getattr(caught.value, "__notes__", ())


def test_a_rule_that_says_it_is_the_users_doing() -> None:
    def impl(x: Any) -> Any:
        raise not_of_rule(ValueError("not like this"))

    p = Primitive("attribution.refusing", impl=impl, abstract_eval=lambda x: x)
    with pytest.raises(ValueError, match="not like this") as caught:
        p.bind(1.0)
    assert not getattr(caught.value, "__notes__", ())
