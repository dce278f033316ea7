"""Functions exported for sizes that are symbols: what they give is what the function gives at each size."""

from __future__ import annotations

import gc
import inspect
import operator
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax, nn
from corejax.export import InconclusiveDimensionOperation, SymbolicScope, symbolic_shape

SIZES = ({"b": 1, "n": 3}, {"b": 5, "n": 2})


def specs(*shapes: str, constraints: Any = ()) -> list[Any]:
    """Types of arguments in one scope."""
    scope = SymbolicScope(constraints)
    return [corejax.ShapeDtypeStruct(symbolic_shape(s, scope=scope), np.float32) for s in shapes]


def loaded(fun: Callable[..., Any], *shapes: str, constraints: Any = (), vjp_order: int = 0) -> Any:
    exported = export.export(corejax.jit(fun))(*specs(*shapes, constraints=constraints))
    return export.deserialize(exported.serialize(vjp_order))


def arguments(shapes: tuple[str, ...], sizes: dict[str, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    made = [rng.normal(size=eval(f"({s},)", {}, dict(sizes))) for s in shapes]
    return [jnp.asarray(x.astype(np.float32)) for x in made]


def total(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in corejax.tree_util.tree_leaves(fun(*args)))


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "elementwise and scalars": (lambda x, y: (jnp.tanh(x) * 2 + y, jnp.where(x > 0, x, 0)), ("b, 3", "3")),
    "products": (lambda x, y: (x.T @ x, x @ jnp.swapaxes(y, 0, 1), jnp.einsum("bi,ni->bn", x, y)), ("b, 3", "n, 3")),
    "reductions": (lambda x: (x.sum(0), x.mean(), x.std(-1), x.max(0), nn.logsumexp(x, -1)), ("b, n",)),
    "reshapes": (lambda x: (x.reshape(-1), x.reshape(x.shape[0] * 3), x.reshape(2, -1)), ("2*b, 3",)),
    "joining": (lambda x, y: (jnp.concatenate([x, y, x]), jnp.stack([x, x]), jnp.tile(x, (2, 1))), ("b, 3", "n, 3")),
    "slices": (lambda x: (x[1:] - x[:-1], x[:, 1:], x[0] + x[-1], x[::-1]), ("b + 1, 3",)),
    "broadcasts": (lambda x, y: (x[:, None] + y, jnp.zeros(x.shape), jnp.broadcast_to(y, (*x.shape, 3))), ("b", "3")),
    "indices": (lambda x: (x[:, jnp.array([2, 0])], x.at[0].add(1.0), jnp.take(x, 1, axis=1)), ("b, 3",)),
    "sizes as values": (lambda x: (x * x.shape[0], x / x.size, x * x.shape[1] ** 0.5, 1 - x.shape[0] * x), ("b, n",)),
    "sorting": (lambda x: (jnp.sort(x, 0), lax.top_k(x, 2)[0], jnp.cumsum(x, 0)), ("b, 3",)),
    "attention": (lambda q, k: nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 2.0) @ k, ("b, n, 4", "b, n, 4")),
    "convolution": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), ("b, 2, 4, 4", "3, 2, 3, 3")),
    "control flow": (
        lambda x: (lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), lax.fori_loop(0, 2, lambda i, c: c * x, x)),
        ("b, 3",),
    ),
    "loops over an axis": (
        lambda x: (
            lax.scan(lambda c, r: (c * 0.5 + r, jnp.sin(c)), jnp.zeros(3), x),
            lax.scan(lambda c, r: (c + r.sum(), r), 0.0, x, reverse=True, unroll=2),
            lax.map(jnp.sin, x),
            lax.fori_loop(0, x.shape[0], lambda i, c: c + jnp.sin(x[i]) * c, jnp.ones(3)),
        ),
        ("b, 3",),
    ),
    "loops that may be of no iteration": (
        lambda x: (
            lax.scan(lambda c, r: (c * 0.5 + r, jnp.sin(c)), jnp.zeros(x.shape[1]), x[1:]),
            lax.fori_loop(1, x.shape[0], lambda i, c: c + jnp.sin(x[i]) * c, jnp.ones(x.shape[1])),
            lax.fori_loop(x.shape[0], 0, lambda i, c: c + 1.0, 1.0),
            corejax.vmap(lambda r: lax.scan(lambda c, e: (c + e, c), 0.0, r[:-1])[1])(x),
        ),
        ("b, n",),
    ),
    "shifts": (lambda x: (x[1:], x[:-1], x[1:] - x[:-1], jnp.diff(x, axis=0)), ("b, 3",)),
    "diagonals": (lambda x: (jnp.diag(x), jnp.trace(x), x * jnp.eye(x.shape[0]), jnp.tril(x)), ("b, b",)),
    "random numbers": (
        lambda x: x + corejax.random.normal(corejax.random.split(corejax.random.key(3))[1], (3,)),
        ("b, 3",),
    ),
    "transformations": (lambda x: (corejax.vmap(lambda r: r / (9 + r.sum()))(x), corejax.jit(jnp.sin)(x)), ("b, 3",)),
    "a gradient": (lambda x, w: corejax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w), ("b, 3", "3, n")),
}


@pytest.mark.parametrize("derived", [SIZES[1:], pytest.param(SIZES, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_derivatives_are_those_of_the_function(name: str, derived: tuple[Any, ...]) -> None:
    fun, shapes = FUNCTIONS[name]
    found = loaded(fun, *shapes, vjp_order=1)
    assert found.uses_global_constants
    for sizes in SIZES:
        args = arguments(shapes, sizes)
        got, wanted = found.call(*args), fun(*args)
        got_grad, wanted_grad = (corejax.grad(total(f))(*args) if sizes in derived else () for f in (found.call, fun))
        leaves = [corejax.tree_util.tree_leaves(x) for x in ((got, got_grad), (wanted, wanted_grad))]
        for a, b in zip(*leaves, strict=True):
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_types_are_polynomials() -> None:
    found = loaded(lambda x, y: jnp.outer(x, y).reshape(-1), "b + 1", "2*b")
    assert [a.str_short() for a in (*found.in_avals, *found.out_avals)] == [
        "f32[b + 1]",
        "f32[2*b]",
        "f32[2*b*b + 2*b]",
    ]
    assert "tensor<⟨b + 1⟩xf32>" in found.mlir_module()
    with pytest.raises(ValueError, match="has symbolic sizes"):
        found.mlir_module(serialized=False)


def test_transformations_of_calls() -> None:
    found = loaded(lambda x: jnp.sin(x).sum(), "b", vjp_order=3)
    xs = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(corejax.vmap(found.call)(xs), np.sin(xs).sum(1), rtol=1e-6)
    np.testing.assert_allclose(corejax.jit(corejax.hessian(found.call))(xs[0]), np.diag(-np.sin(xs[0])), atol=1e-6)
    outer = export.export(corejax.jit(found.call))(xs[1])
    np.testing.assert_allclose(outer.call(xs[1]), np.sin(xs[1]).sum(), rtol=1e-6)
    assert found.vjp().in_avals[0].str_short() == "f32[b]"


def test_calls_with_symbols_in_functions_with_symbols() -> None:
    @corejax.jit
    def inner(x: Any, y: Any) -> Any:
        padded = nn.relu(jnp.concatenate([x, y]))
        return lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) * padded, padded), jnp.arange(x.shape[0] // 2)

    f = loaded(inner, "b, 3", "n, 3", vjp_order=2)

    def outer(x: Any, y: Any) -> Any:
        found, numbers = f.call(x, y)
        again, _ = f.call(found, jnp.ones((2, 3)))
        return inner(x, y)[0].sum() + found.mean() + again.max() + numbers.sum() + f.call(y, y[:1])[0].sum()

    def expected(x: Any, y: Any) -> Any:
        found, numbers = inner(x, y)
        again, _ = inner(found, jnp.ones((2, 3)))
        return found.sum() + found.mean() + again.max() + numbers.sum() + inner(y, y[:1])[0].sum()

    both = loaded(outer, "k + 1, 3", "2*m, 3", vjp_order=1)
    x, y = arguments(("3, 3", "4, 3"), {})
    np.testing.assert_allclose(both.call(x, y), expected(x, y), rtol=1e-5)
    for got, wanted in zip(*(corejax.grad(g, (0, 1))(x, y) for g in (both.call, expected)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    third = loaded(lambda x: both.call(x, x[1:]), "4*q + 1, 3")
    x, _ = arguments(("5, 3", "1"), {})
    np.testing.assert_allclose(third.call(x), expected(x, x[1:]), rtol=1e-5)


def test_calls_with_symbols_fit_for_all_sizes() -> None:
    f = loaded(lambda x: x.reshape(-1), "a, a + b")
    assert [d.str_short() for d in loaded(f.call, "c, c + 2").out_avals] == ["f32[c*c + 2*c]"]
    for shape in ("4, c", "c, c", "c, 4"):
        with pytest.raises(ValueError, match=r"it takes f32\[a,a \+ b\] as argument args\[0\]"):
            loaded(f.call, shape)
    even = loaded(lambda x: x.reshape(2, -1), "2*b", constraints=["b >= 2"])
    assert loaded(even.call, "4*c").out_avals[0].str_short() == "f32[2,2*c]"
    with pytest.raises(ValueError, match=r"it takes f32\[2\*b\]"):
        loaded(even.call, "c")
    with pytest.raises(InconclusiveDimensionOperation, match="c - 2 >= 0"):
        loaded(even.call, "2*c")
    assert loaded(even.call, "2*c", constraints=["c >= 2"]).call(np.arange(6, dtype=np.float32)).shape == (2, 3)
    either = loaded(lambda x: x[: corejax.core.max_dim(x.shape[0] - 2, 1)], "b")
    assert loaded(either.call, "n + 4").out_avals[0].str_short() == "f32[n + 2]"


def test_symbols_are_forgotten_with_what_was_exported() -> None:
    scope = SymbolicScope()
    types = [corejax.ShapeDtypeStruct(symbolic_shape("b, 3", scope=scope), np.float32)]
    export.export(corejax.jit(lambda x: jnp.tanh(x).sum()))(*types).call(np.ones((2, 3), np.float32))
    alive = weakref.ref(scope)
    del scope, types
    corejax.clear_caches()
    for _ in range(10):  # a collection that another thread is in makes this one do nothing
        gc.collect()
        if alive() is None:
            return
        time.sleep(0.1)
    raise AssertionError(f"the symbols' scope is still alive, held by\n{holders(alive())}")


def holders(thing: object, depth: int = 8) -> str:
    """What refers to a thing, and what to that."""
    lines, level, seen = [], [thing], {id(sys._getframe())}
    for _ in range(depth):
        level = [x for y in level for x in gc.get_referrers(y) if id(x) not in seen and not inspect.isframe(x)][:20]
        seen |= {id(x) for x in level} | {id(level)}
        lines.append("; ".join(f"{type(x).__name__} {str(x)[:80]!r}" for x in level))
    return "\n".join(lines)


# -- what arguments have to be -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "given", "said"),
    [
        (("b", "2*b"), ((3,), (5,)), r"takes f32\[2\*b\] as argument args\[1\] with b = 3, got f32\[5\]"),
        (("2*b",), ((5,),), r"takes f32\[2\*b\] as argument args\[0\], got f32\[5\]"),
        (("b + 2",), ((2,),), r"takes f32\[b \+ 2\] as argument args\[0\], got f32\[2\]"),
        (("b, 3",), ((2, 4),), r"takes f32\[b,3\] as argument args\[0\] with b = 2, got f32\[2,4\]"),
        (("b",), ((2, 4),), r"takes f32\[b\] as argument args\[0\], got f32\[2,4\]"),
        (("b",), ((0,),), r"takes f32\[b\] as argument args\[0\], got f32\[0\]"),
    ],
)
def test_arguments_that_do_not_fit(shapes: Any, given: Any, said: str) -> None:
    found = loaded(lambda *xs: xs[0], *shapes)
    with pytest.raises(ValueError, match=said):
        found.call(*(np.zeros(s, np.float32) for s in given))


def test_constraints_decide_and_are_held() -> None:
    def f(x: Any) -> Any:
        return x[:3] if x.shape[0] >= 3 else x

    with pytest.raises(InconclusiveDimensionOperation, match=r"b >= 3 depends on the values of the .*constraints="):
        loaded(f, "b")
    found = loaded(f, "b", constraints=["b >= 3", "2*b <= 16"])
    np.testing.assert_array_equal(found.call(np.arange(5, dtype=np.float32)), [0, 1, 2])
    for size, broken in ((2, "b >= 3"), (9, r"2\*b <= 16")):
        with pytest.raises(ValueError, match=f"the constraint '{broken}' does not hold for {{'b': {size}}}"):
            found.call(np.zeros(size, np.float32))
    between = loaded(lambda x, y: x[: y.shape[0]] + y, "b", "n", constraints=["b >= n"])
    assert between.call(np.ones(5, np.float32), np.ones(3, np.float32)).shape == (3,)


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fun", "said"),
    [
        (lambda x: x if x.shape[0] > 4 else 2 * x, "whether b >= 5 depends on the values"),
        (lambda x: x * np.zeros(x.shape[0]), "b is needed as an integer"),
        (lambda x: lax.fori_loop(2, x.shape[0], lambda i, c: c + x[i], 0.0), "b - 2 >= 0 depends on the values"),
        (lambda x: x.reshape(2, -1), r"whether mod\(b, 2\) is 0 .*mod\(b, 2\) == 0"),
    ],
)
def test_what_depends_on_the_size_is_refused(fun: Any, said: str) -> None:
    for _ in range(2):  # nothing is left behind
        with pytest.raises(InconclusiveDimensionOperation, match=said):
            export.export(corejax.jit(fun))(*specs("b"))


def test_symbols_are_not_compiled() -> None:
    with pytest.raises(ValueError, match=r"sin: programs are compiled for integer sizes, but an argument is f32\[b\]"):
        corejax.jit(jnp.sin).lower(*specs("b")).compile()


def test_shapes_of_several_scopes_and_sizes_that_nothing_tells() -> None:
    two = [corejax.ShapeDtypeStruct(symbolic_shape("b"), np.float32) for _ in range(2)]
    with pytest.raises(ValueError, match="several scopes"):
        export.export(corejax.jit(lambda x, y: (x, y)))(*two)
    with pytest.raises(ValueError, match="several scopes"):
        export.export(corejax.jit(lambda x, y: x + y))(*two)
    with pytest.raises(ValueError, match="have different scopes"):
        two[0].shape[0] + two[1].shape[0]
    with pytest.raises(ValueError, match=r"numbers of iterations differ(.|\n)*xs: float32\[b\] has b\n  length: 4"):
        export.export(corejax.jit(lambda x: lax.scan(lambda c, r: (c, r), 0, x, length=4)))(*specs("b"))
    with pytest.raises(ValueError, match=r"the arguments' shapes do not determine the sizes in b\*n"):
        export.export(corejax.jit(lambda x: x))(*specs("b*n"))


# -- shapes as text ------------------------------------------------------------------------------------------------


def test_shapes_from_text() -> None:
    b, twice, last = symbolic_shape("b, 2*b + 1 - b, (b + 1)**2 - 2*b")
    assert (repr(b), repr(twice), repr(last)) == ("b", "b + 1", "b*b + 1")
    assert symbolic_shape("_, b, ...", like=(4, 9, 2, 3))[0::2] == (4, 2)
    assert [repr(d) for d in symbolic_shape("(a,)")] == ["a"] and symbolic_shape("") == symbolic_shape("()") == ()
    assert export.is_symbolic_dim(b) and not export.is_symbolic_dim(3)
    same = symbolic_shape("b", scope=b.scope)[0]
    assert same == b and hash(same) == hash(b) and symbolic_shape("b")[0] != b and b - same == 0 and b != 3


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("b,,c", {}, "expressions separated by commas"),
        ("b/2", {}, "such as 2"),
        ("b**c", {}, "such as 2"),
        ("_", {}, "'_', which needs"),
        ("..., b", {"like": (1, 2)}, "last entry"),
        ("b", {"like": (1, 2)}, "has 1 entries"),
        ("b", {"constraints": ["b > 3"]}, "'>=', '<=' or '=='"),
        ("b", {"constraints": ["3 >= 4"]}, "never holds"),
        ("b", {"constraints": ["b <= 0"]}, "'b <= 0' never holds"),
        ("b", {"constraints": ["b >= 5", "b <= 4"]}, "'b <= 4' never holds"),
        ("b, n", {"constraints": ["b >= n + 1", "n >= b + 1"]}, "'n >= b \\+ 1' never holds"),
        ("b, 3", {"like": (None, 4)}, "entry 1 of 'b, 3' is 3"),
        ("b", {"constraints": ["b >= 3"], "scope": SymbolicScope()}, "not both"),
    ],
)
def test_texts_that_are_no_shapes(text: str, options: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        symbolic_shape(text, **options)
    with pytest.raises(TypeError, match="symbolic_shape: a shape is a string such as"):
        symbolic_shape(3)  # type: ignore[arg-type]


def test_arithmetic_and_comparisons() -> None:
    b, n = symbolic_shape("b, n", constraints=["n <= 8"])
    assert (b + 1) * (b - 1) - b * b == -1 and 2 * b // 2 == b and (b * n) % n == 0 and divmod(4 * b, b) == (4, 0)
    assert b >= 1 and b > 0 and n <= 8 and not n > 8 and b + 9 > n and -b <= -1 and bool(b) and max(b, 0) == b
    assert divmod(2 * b + 1, 2) == (b, 1) and divmod(4 * b * n + 3, 4 * n) == (b, 3)
    assert divmod(b * b - 1, b + 1) == (b - 1, 0) and divmod(-b * b, b + 1) == (-b, b) and (b * n + b) // b == n + 1
    assert divmod(3 * b + 5, 3) == (b + 1, 2) and (3 * b - 2) // 3 == b - 1
    assert -1 % b == b - 1 and 0 // b == 0 and b // (b + 1) == 0 and b**2 == b * b
    for undecided in (lambda: b > 1, lambda: b > n, lambda: bool(b - 1), lambda: int(b)):
        with pytest.raises(InconclusiveDimensionOperation):
            undecided()


def test_specs_of_trees() -> None:
    args = ({"w": np.zeros((3, 4), np.float32)}, np.zeros((2, 3), np.int8))
    params, x = export.symbolic_args_specs(args, (None, "b, ..."), constraints=["b >= 2"])
    assert params["w"].shape == (3, 4) and repr(x.shape) == "(b, 3)" and x.dtype == np.int8
    both = export.symbolic_args_specs((np.zeros((2, 2)), np.zeros((2, 5))), "b, _")
    assert repr([s.shape for s in both]) == "[(b, 2), (b, 5)]" and both[0].shape[0] == both[1].shape[0]
    params, x = export.symbolic_args_specs(args, [None, "b, ..."])
    assert params["w"].shape == (3, 4) and repr(x.shape) == "(b, 3)"


def test_texts_of_sizes_are_read_again() -> None:
    for text in ("2*b^2 + 1", "-2*b*n", "3*b*mod(b + 2, n + 2)", "max(b, n) - min(b, 7)", "(b + 1)^2"):
        size, b = symbolic_shape(f"{text}, b")
        assert symbolic_shape(str(size), scope=b.scope) == symbolic_shape(repr(size), scope=b.scope) == (size,)


# -- operations that are no polynomials ----------------------------------------------------------------------------


def test_operations_as_text_and_as_sizes() -> None:
    texts = "b // 2, mod(b, 3), max(b, 4), min(b, 2), floordiv(b, 2), (b + 4) // 2, b % b, max(b, 0), 2 * (b // 2)"
    wanted = ["floordiv(b, 2)", "mod(b, 3)", "max(b, 4)", "min(b, 2)", "floordiv(b, 2)", "floordiv(b, 2) + 2", "0", "b"]
    sizes = symbolic_shape(texts)
    assert [repr(d) for d in sizes[:-1]] == wanted and repr(sizes[-1]) == "b - mod(b, 2)"
    for size in (1, 2, 3, 7, 12):
        known = [d if isinstance(d, int) else d.at({"b": size}) for d in sizes]
        assert known == [
            size // 2,
            size % 3,
            max(size, 4),
            min(size, 2),
            size // 2,
            size // 2 + 2,
            0,
            size,
            size // 2 * 2,
        ]
    for text in ("max(b)", "mod(b, 2, 3)", "abs(b)", "max(b, c=1)"):
        with pytest.raises(ValueError, match="a symbolic size consists of"):
            symbolic_shape(text)
    with pytest.raises(ZeroDivisionError, match="the size b is divided by 0"):
        symbolic_shape("b // 0")


def test_arithmetic_is_jaxs() -> None:
    theirs = pytest.importorskip("jax")

    def sizes(export: Any, core: Any) -> list[str]:
        b, n = export.symbolic_shape("b, n")
        found = [
            b // 2,
            b % 3,
            (b * 4) // 2,
            b - b,
            core.max_dim(b, 4),
            core.min_dim(b, n),
            core.max_dim(b, 1),
        ]
        return [repr(d).replace(" ", "") for d in found]

    ours = sizes(export, corejax.core)
    assert [text for text, other in zip(ours, sizes(theirs.export, theirs.core), strict=True) if text != other] == []


def test_comparisons_that_bounds_decide() -> None:
    (b,) = symbolic_shape("b", constraints=["b >= 8"])
    half, rest = b // 2, b % 3
    assert half >= 4 and half <= b and b - half >= 4 and 2 * half <= b and 2 * half >= b - 1
    assert 0 <= rest <= 2 and rest < b and b - rest >= 6 and corejax.core.max_dim(b, 20) >= b
    assert corejax.core.min_dim(b, 20) <= 20 and corejax.core.min_dim(b, 20) >= 8 and corejax.core.max_dim(b, 3) == b
    for undecided in (
        lambda: half >= 5,
        lambda: rest >= 1,
        lambda: corejax.core.max_dim(b, 20) >= 21,
        lambda: bool(rest),
    ):
        with pytest.raises(InconclusiveDimensionOperation):
            undecided()


@pytest.mark.parametrize(
    ("constraints", "decided"),
    [
        ([], ["0 >= mod(b, -3)", "mod(b, -3) >= -2", "-1 >= floordiv(b, -2)", "floordiv(7, -b) >= -7"]),
        (["a + 2 <= b", "b <= a + 5", "a + b >= c"], ["b >= 3", "b - a >= 2", "5 >= b - a", "2*a + 5 >= c"]),
        (["a >= b", "b >= c", "c >= d", "d >= e"], ["a >= e", "a + b >= c + d"]),
        (["2*a + 3*b >= 10"], ["a + b >= 4"]),
        (["2*a + 3*b <= 10"], ["b <= 2", "a <= 3", "3 >= 2*b - a", "2*b - a >= -1"]),
        (["2*a >= 5", "3*a <= 10"], ["a >= 3", "3 >= a"]),
        (["2*a >= 2*b + 3", "2*a <= 2*b + 5"], ["a >= b + 2", "b + 2 >= a"]),
        (["max(a, b) == 5", "min(a, b) == 3"], ["a >= 3", "5 >= a", "b >= 3"]),
        (["b == a", "c >= b + 3", "max(d, a) == b + 3"], ["a + 3 >= d", "max(c, a) == c"]),
        (["max(a, b) >= 8", "mod(a, b) >= 2", "mod(max(a, b), 4) >= 2"], ["max(a, b) >= 6", "mod(max(a, b), 4) >= 1"]),
    ],
)
def test_what_constraints_together_say(constraints: list[str], decided: list[str]) -> None:
    (a,) = symbolic_shape("a", constraints=constraints)
    for text in decided:
        sign = next(sign for sign in (">=", "<=", "==") if sign in text)
        left, right = (symbolic_shape(side, scope=a.scope)[0] for side in text.split(sign))
        assert {">=": operator.ge, "<=": operator.le, "==": operator.eq}[sign](left, right), text


def test_a_bound_of_an_operation_is_no_more_than_was_said() -> None:
    (a,) = symbolic_shape("a", constraints=["mod(a, 4) >= 0"])
    with pytest.raises(InconclusiveDimensionOperation):
        bool(a % 4 >= 1)


def test_equations() -> None:
    b, a = symbolic_shape("b, a", constraints=["b == 2*a"])
    assert repr(b) == "2*a" and b // 2 == a
    (b,) = symbolic_shape("b", constraints=["mod(b, 2) == 0"])
    assert b % 2 == 0 and (b // 2) * 2 == b
    for text in ("2*b == 4", "b == b + 1", "3 == b"):
        with pytest.raises(ValueError, match="equation"):
            symbolic_shape("b", constraints=[text])
    found = loaded(lambda x: x.reshape(x.shape[0] // 2, 2), "b", constraints=["mod(b, 2) == 0"])
    assert found.call(np.zeros(6, np.float32)).shape == (3, 2)
    with pytest.raises(ValueError, match=r"the constraint 'mod\(b, 2\) == 0' does not hold for {'b': 5}"):
        found.call(np.zeros(5, np.float32))


KEY = corejax.random.key(1)
SIZED: dict[str, Any] = {
    "half": lambda x: x[: x.shape[0] // 2],
    "last third": lambda x: x[-(x.shape[0] // 3 + 1) :],
    "every third": lambda x: x[1::3],
    "padded": lambda x: jnp.pad(x, (0, x.shape[0] % 3)),
    "padded by itself": lambda x: jnp.pad(x, (1, x.shape[0])),
    "arange": lambda x: jnp.arange(x.shape[0]) + jnp.arange(1, 2 * x.shape[0] + 1, 2) * x,
    "joined": lambda x: jnp.concatenate([x, x[: x.shape[0] // 2]]),
    "rolled": lambda x: jnp.roll(x, x.shape[0] // 2),
    "median": lambda x: jnp.sort(x)[x.shape[0] // 2],
    "quantiles": lambda x: (jnp.median(x), jnp.percentile(x, jnp.array([20.0, 50.0]))),
    "along an axis": lambda x: jnp.take_along_axis(x[:, None] * x, jnp.zeros((x.shape[0], 1), np.int32), 1),
    "its shape": lambda x: (jnp.array(x.shape), jnp.array([[x.shape[0], 2], (1, x[0])])),
    "filled": lambda x: jnp.asarray(x).at[jnp.array([-1, 0, 99])].get(mode="fill", fill_value=7),
    "gradient": lambda x: corejax.grad(lambda y: (y[: y.shape[0] // 2] ** 2).sum())(x),
    "normal": lambda x: corejax.random.normal(KEY, x.shape),
    "bits": lambda x: corejax.random.bits(KEY, (x.shape[0], 3)),
    "integers": lambda x: corejax.random.randint(KEY, x.shape, 0, 10),
    "keys": lambda x: corejax.random.key_data(corejax.random.split(KEY, x.shape[0])),
    "rbg": lambda x: corejax.random.uniform(corejax.random.key(1, impl="rbg"), x.shape),
}


@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_programs_compute(name: str) -> None:
    found = loaded(SIZED[name], "b")
    for size in (1, 2, 7, 65):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        for got, wanted in zip(*map(corejax.tree.leaves, (found.call(x), SIZED[name](x))), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_sizes_of_parts_and_windows() -> None:
    def fun(x: Any) -> Any:
        return jnp.split(x, [x.shape[0] // 2]), lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "VALID")

    found = loaded(fun, "b", constraints=["b >= 3"])
    for size in (3, 4, 9):
        x = np.arange(size, dtype=np.float32)
        for a, b in zip(*map(corejax.tree.leaves, (found.call(x), fun(x))), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))

    def windows(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID")

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = loaded(windows, "b, n", constraints=["b >= 2", "n >= 2"])
    np.testing.assert_array_equal(found.call(x), windows(x))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows_over_sizes_of_which_nothing_is_known(stride: int, padding: str) -> None:
    def fun(x: Any, w: Any) -> Any:
        pooled = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, stride, stride), padding)
        return lax.conv(x, w, (stride, stride), padding), pooled

    found = loaded(fun, "b, 2, n, n", "3, 2, 3, 3")
    for size in (1, 2, 5):
        args = arguments(("2, 2, n, n", "3, 2, 3, 3"), {"n": size})
        for got, wanted in zip(found.call(*args), fun(*args), strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_rounding_up_is_one_operation() -> None:
    (n,) = symbolic_shape("n")
    assert (n + -n % 3) // 3 == -(-n // 3) >= 1 and (n + -n % 3) % 3 == 0
    assert [(-(-n // 3)).at({"n": size}) for size in (1, 3, 4)] == [1, 1, 2]


def test_types_with_operations() -> None:
    found = loaded(lambda x, y: x.sum() + y.sum(), "b", "b // 2")
    assert [aval.str_short() for aval in found.in_avals] == ["f32[b]", "f32[floordiv(b, 2)]"]
    assert found.call(np.ones(5, np.float32), np.ones(2, np.float32)) == 7
    with pytest.raises(ValueError, match=r"f32\[floordiv\(b, 2\)\] as argument .* with b = 5"):
        found.call(np.ones(5, np.float32), np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"the arguments' shapes do not determine the sizes in floordiv\(b, 2\)"):
        loaded(jnp.sin, "b // 2")


def test_symbolic_dim_bounds() -> None:
    a, b = export.symbolic_shape("a, b", constraints=["a >= 4", "a <= 9"])
    assert export.symbolic_dim_bounds(a) == (4, 9)
    assert export.symbolic_dim_bounds(2 * a + 1) == (9, 19)
    assert export.symbolic_dim_bounds(b)[0] == 1
    assert export.symbolic_dim_bounds(7) == export.symbolic_dim_bounds(np.int32(7)) == (7, 7)
    with pytest.raises(TypeError, match="the dimension must be an integer or a symbolic size, got 'a'"):
        export.symbolic_dim_bounds("a")
