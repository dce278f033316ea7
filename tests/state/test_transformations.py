"""References under every transformation: each program with a reference beside the same one without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax


class Pair(NamedTuple):
    """A function `x -> y` of a scalar that uses references, and one that computes the same without."""

    stateful: Callable[[Any], Any]
    pure: Callable[[Any], Any]


def straight(x: Any) -> Any:
    ref = corejax.new_ref(jnp.zeros(3) * x)
    ref[0] = x
    ref[1:] = jnp.sin(x)
    ref[2] += ref[0] * x
    return (ref[...] ** 2).sum()


def in_scan(x: Any) -> Any:
    ref = corejax.new_ref(jnp.ones(2))

    def body(carry: Any, y: Any) -> Any:
        ref[0] = ref[0] * x + y
        ref[1] += jnp.cos(ref[0])
        return carry + ref[1], ref[0]

    total, ys = lax.scan(body, x, jnp.arange(3.0))
    return total + ys.sum() + corejax.freeze(ref).sum()


def in_scan_pure(x: Any) -> Any:
    def body(carry: Any, y: Any) -> Any:
        total, a, b = carry
        a = a * x + y
        b = b + jnp.cos(a)
        return (total + b, a, b), a

    (total, a, b), ys = lax.scan(body, (x, 1.0 + 0 * x, 1.0 + 0 * x), jnp.arange(3.0))
    return total + ys.sum() + a + b


def in_fori_loop(x: Any) -> Any:
    ref = corejax.new_ref(x)

    def body(i: Any, _: Any) -> None:
        ref[...] = jnp.sin(ref[...]) * x + i

    lax.fori_loop(0, 4, body, None)
    return ref[...]


def in_cond(x: Any) -> Any:
    written, read = corejax.new_ref(x), corejax.new_ref(2 * x)

    def double(y: Any) -> Any:
        written[...] = written[...] * y
        return read[...]

    z = lax.cond(x > 0, double, lambda y: y * 3, x)
    return z * written[...]


def in_switch(x: Any) -> Any:
    ref = corejax.new_ref(x)

    def branch(i: int) -> Any:
        return lambda: corejax.ref.swap(ref, ..., ref[...] ** (i + 1))

    return lax.switch(2, [branch(i) for i in range(3)]) * ref[...]


def in_checkpoint(x: Any) -> Any:
    ref = corejax.new_ref(x)

    @corejax.checkpoint
    def f(y: Any) -> Any:
        ref[...] = jnp.sin(ref[...] * y)
        return ref[...] * y

    return f(x) + f(2 * x)


def in_nested_jit(x: Any) -> Any:
    ref = corejax.new_ref(x)

    @corejax.jit
    def inner(other: corejax.Ref, y: Any) -> Any:
        other[...] += y * ref[...]
        return other[...]

    outer = corejax.new_ref(jnp.zeros(()))
    return corejax.jit(lambda y: inner(outer, y) * inner(outer, 2 * y))(x) + outer[...]


def in_vmap(x: Any) -> Any:
    refs = corejax.new_ref(jnp.arange(3.0))

    def f(ref: corejax.Ref, y: Any) -> Any:
        ref[...] = ref[...] * y
        own = corejax.new_ref(jnp.zeros(()))
        own[...] = y
        return own[...] * ref[...]

    return corejax.vmap(f, in_axes=(0, None))(refs, x).sum() + refs[...].sum()


def scanned(x: Any) -> Any:
    refs = corejax.new_ref(jnp.arange(3.0) * x)

    def body(carry: Any, ref: corejax.Ref) -> Any:
        ref[...] = ref[...] * carry
        return carry + ref[...], None

    total, _ = lax.scan(body, x, refs)
    return total * refs[...].sum()


def scanned_pure(x: Any) -> Any:
    def body(carry: Any, y: Any) -> Any:
        y = y * carry
        return carry + y, y

    total, ys = lax.scan(body, x, jnp.arange(3.0) * x)
    return total * ys.sum()


def nested(x: Any) -> Any:
    ref = corejax.new_ref(jnp.zeros(2))

    def body(carry: Any, y: Any) -> Any:
        def more(z: Any) -> Any:
            ref[0] += z
            lax.fori_loop(0, 2, lambda i, _: ref.at[1].__setitem__(..., ref[1] + ref[0] * i), None)
            return z * ref[1]

        return lax.cond(y > 0, more, jnp.sin, carry), ref[0]

    last, ys = corejax.jit(lambda x: lax.scan(body, x, jnp.arange(3.0)))(x)
    return last + ys.sum() + (ref[...] * x).sum()


def nested_pure(x: Any) -> Any:
    def body(carry: Any, y: Any) -> Any:
        def more(z: Any, a: Any, b: Any) -> Any:
            a = a + z
            b = lax.fori_loop(0, 2, lambda i, b: b + a * i, b)
            return z * b, a, b

        carry = lax.cond(y > 0, more, lambda z, a, b: (jnp.sin(z), a, b), *carry)
        return carry, carry[1]

    (last, a, b), ys = lax.scan(body, (x, 0 * x, 0 * x), jnp.arange(3.0))
    return last + ys.sum() + (a + b) * x


def in_while_loop(x: Any) -> Any:
    ref, count = corejax.new_ref(x), corejax.new_ref(0)

    def body(y: Any) -> Any:
        ref[...] = ref[...] * x
        count[...] += 1
        return y + ref[...]

    return lax.while_loop(lambda y: count[...] < 3, body, x) + ref[...]


PAIRS = {
    "straight": Pair(straight, lambda x: x**2 + jnp.sin(x) ** 2 + (jnp.sin(x) + x * x) ** 2),
    "scan": Pair(in_scan, in_scan_pure),
    "fori_loop": Pair(in_fori_loop, lambda x: lax.fori_loop(0, 4, lambda i, y: jnp.sin(y) * x + i, x)),
    "cond": Pair(in_cond, lambda x: lax.cond(x > 0, lambda: 2 * x * x * x, lambda: 3 * x * x)),
    "switch": Pair(in_switch, lambda x: x * x**3),
    "checkpoint": Pair(in_checkpoint, lambda x: jnp.sin(x * x) * x + jnp.sin(jnp.sin(x * x) * 2 * x) * 2 * x),
    "jit": Pair(in_nested_jit, lambda x: x * x * 3 * x * x + 3 * x * x),
    "vmap": Pair(in_vmap, lambda x: 3 * x * x + 3 * x),
    "scanned": Pair(scanned, scanned_pure),
    "nested": Pair(nested, nested_pure),
}

TRANSFORMATIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "eager": lambda f: f,
    "jit": corejax.jit,
    "grad": corejax.grad,
    "jit of grad": lambda f: corejax.jit(corejax.grad(f)),
    "grad of jit": lambda f: corejax.grad(corejax.jit(f)),
    "jvp": lambda f: lambda x: corejax.jvp(f, (x,), (2.0,)),
    "grad of grad": lambda f: corejax.grad(corejax.grad(f)),
    "hessian": corejax.hessian,
    "linearize": lambda f: lambda x: corejax.linearize(f, x)[1](3.0),
    "vmap": lambda f: lambda x: corejax.vmap(f)(jnp.stack([x, 2 * x, -x])),
    "vmap of grad": lambda f: lambda x: corejax.vmap(corejax.grad(f))(jnp.stack([x, 2 * x, -x])),
    "jit of vmap of jit": lambda f: lambda x: corejax.jit(corejax.vmap(corejax.jit(f)))(jnp.stack([x, -x])),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("program", PAIRS)
def test_computes_what_the_program_without_references_does(program: str, transformation: str) -> None:
    stateful, pure = PAIRS[program]
    transform = TRANSFORMATIONS[transformation]
    x = jnp.asarray(0.7)
    got, expected = transform(stateful)(x), transform(pure)(x)
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


@pytest.mark.parametrize("transformation", ["eager", "jit", "jvp", "vmap", "jit of vmap of jit"])
def test_while_loops(transformation: str) -> None:
    transform = TRANSFORMATIONS[transformation]
    x = jnp.asarray(0.7)
    got, expected = transform(in_while_loop)(x), transform(lambda x: x + x**2 + x**3 + x**4 + x**4)(x)
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


# -- references that derivative rules use ------------------------------------------------------------------------------


@corejax.custom_vjp
def stash(ref: corejax.Ref, x: Any) -> Any:
    return x


def _stash_backward(ref: corejax.Ref, ct: Any) -> Any:
    ref[...] = 10 * ref[...] + ct
    return None, ct


stash.defvjp(lambda ref, x: (x, ref), _stash_backward)


@pytest.mark.parametrize("transform", ["grad", "jit of grad", "grad of jit"])
@pytest.mark.parametrize("remat", [False, True])
def test_a_backward_pass_writes_a_reference(transform: str, remat: bool) -> None:
    seen = corejax.new_ref(jnp.zeros(()))

    def loss(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return stash(seen, 2 * carry) + 1, None

        return lax.scan(corejax.checkpoint(body) if remat else body, x, None, length=3)[0]

    assert TRANSFORMATIONS[transform](loss)(1.0) == 8.0
    assert seen[...] == 124.0  # 1, 2, 4: the cotangents from the last iteration to the first


@pytest.mark.parametrize("jit", [False, True])
def test_a_backward_pass_writes_the_references_of_its_call(jit: bool) -> None:
    refs = [corejax.new_ref(jnp.zeros(())) for _ in range(3)]

    def f(ref: corejax.Ref, x: Any) -> Any:
        return jnp.sin(stash(ref, x))

    call = corejax.jit(f) if jit else f
    for transform in (corejax.grad, lambda g: corejax.jit(corejax.grad(g))):
        transform(lambda x: sum(k * call(ref, x) for k, ref in enumerate(refs)))(0.0)
        assert [float(ref[...]) for ref in refs] == [0, 1, 2]
        for ref in refs:
            ref[...] = 0.0
    corejax.grad(call, 1)(refs[2], 0.0)
    assert [float(ref[...]) for ref in refs] == [0, 0, 1]


def test_rules_for_derivatives_read_references() -> None:
    scale = corejax.new_ref(3.0)

    @corejax.custom_jvp
    def f(x: Any) -> Any:
        return x * scale[...]

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * scale[...]))
    gradient = corejax.jit(corejax.grad(f))
    assert gradient(1.0) == 3.0
    scale[...] = 5.0
    assert gradient(1.0) == 5.0


@pytest.mark.parametrize("jit", [False, True])
def test_rules_do_not_differentiate_what_references_hold(jit: bool) -> None:
    @corejax.custom_vjp
    def f(ref: corejax.Ref) -> Any:
        return ref[...]

    f.defvjp(lambda ref: (f(ref), None), lambda _, ct: (10 * ct,))
    call = corejax.jit(f) if jit else f
    assert call(corejax.new_ref(3.0)) == 3.0
    with pytest.raises((ValueError, corejax.errors.UnexpectedTracerError), match=r"Pass the value as an argument"):
        corejax.grad(lambda x: call(corejax.new_ref(x)))(3.0)


def test_a_function_with_custom_rules_does_not_write() -> None:
    ref = corejax.new_ref(0.0)

    @corejax.custom_vjp
    def f(x: Any) -> Any:
        ref[...] = 1.0
        return x

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    with pytest.raises(ValueError, match="may read references of enclosing functions, but not write"):
        corejax.jit(f)(1.0)
    assert ref[...] == 0.0


def test_pullbacks_add_cotangents_to_references() -> None:
    total = corejax.new_ref(jnp.zeros(3))
    for k in range(3):
        _, pullback = corejax.vjp(lambda x, y: (x * y).sum(), jnp.arange(3.0), jnp.full(3, float(k)))
        ct_x, ct_y = pullback.with_refs(total, corejax.ad.GradValue())(1.0)
        assert isinstance(ct_x, corejax.ad.GradRef)
        np.testing.assert_array_equal(ct_y, [0, 1, 2])
    np.testing.assert_array_equal(total[...], [3, 3, 3])
    assert pullback.with_refs(corejax.ad.DontWant(), total)(1.0) == (corejax.ad.DidntWant(), corejax.ad.GradRef())
    compiled = corejax.jit(pullback.with_refs(total, corejax.ad.DontWant()))
    assert compiled(1.0) == (corejax.ad.GradRef(), corejax.ad.DidntWant())
    with pytest.raises(TypeError, match="place for each of the 2 arguments"):
        pullback.with_refs(total)(1.0)


def test_written_constants_are_not_differentiated() -> None:
    ref = corejax.new_ref(1.0, kind="no_grad_no_remat")

    def f(x: Any) -> Any:
        ref[...] = x * 2
        return ref[...] * x

    assert corejax.grad(f)(3.0) == 6.0
    assert ref[...] == 6.0
