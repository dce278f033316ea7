"""Public functions of arrays whose sizes are symbols: exported, they give what a direct call gives at each size.

A case is an expression of arguments `x`, `y` of some shapes. The default run exports every third case of a group
of shapes, as one function; the slow one exports each alone, and its gradient, and tries every public function.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export
from corejax.export import InconclusiveDimensionOperation, SymbolicScope, symbolic_shape

_ROOMS = "lax nn random image ops numpy.fft scipy.linalg scipy.signal scipy.special"
ROOMS = {
    **{name.split(".")[-1]: importlib.import_module(f"corejax.{name}") for name in _ROOMS.split()},
    "corejax": corejax,
    "np": np,
    "jnp": jnp,
    "la": jnp.linalg,
    "key": corejax.random.key(0),
}

CASES: dict[tuple[str, ...], str] = {
    ("b",): """
        x.at[-1].set(1.0)
        x.at[-2:].add(2.0)
        x.at[::2].multiply(3.0)
        x[-2:], x[:2], x[1:3], x[:-2], x[3:1]
        x.at[np.array([-1, 0])].max(0.5)
        x[::-1], x[::2], x[1::2], x[-3::2]
        jnp.delete(x, 0), jnp.delete(x, -1), jnp.delete(x, np.s_[::2]), jnp.delete(x, np.array([1, 0, 1]))
        x[::-2], x[-1:0:-2], x[:-3:-1], x[3:1:-1]
        x[np.array([-1, 0])], x[..., -1], x[None, -1]
        jnp.insert(x, 1, 2.0), jnp.insert(x, -1, x[0]), jnp.insert(x, np.s_[::2], 5.0)
        x[x.shape[0] - 1], x[x.shape[0] // 2]
        jnp.repeat(x, x.shape[0]), jnp.tile(x, x.shape[0])
        jnp.vander(x), jnp.vander(x, 3, increasing=True)
        jnp.resize(x, (2, 3)), jnp.resize(x, (x.shape[0], 2))
        jnp.roll(x, 1), jnp.roll(x, jnp.array([1, 2])), jnp.roll(x, -x.shape[0] // 2)
        random.choice(key, x, (3,)), random.choice(key, x, x.shape, replace=False), random.choice(key, x.shape[0])
        jnp.diag(x, 1), jnp.diagflat(x), jnp.outer(x, x), jnp.tri(x.shape[0])
        jnp.polyval(x, 0.5), jnp.polyint(x), jnp.convolve(x, jnp.ones(1))
        linalg.toeplitz(x), linalg.hankel(x), linalg.circulant(x), linalg.convolution_matrix(x, 3)
        jnp.median(x), jnp.quantile(x, 0.3), jnp.ptp(x), jnp.interp(x, jnp.sort(x), x)
        jnp.argmax(x), jnp.searchsorted(jnp.sort(x), x), jnp.isin(x, x[:2]), jnp.unique(x, size=2)
        x * jnp.size(x), jnp.packbits(x > 0), jnp.arange(x.shape[0]) * x, jnp.linspace(0.0, 1.0, 3) + x[0]
        jnp.abs(jnp.fft.fft(x)), jnp.abs(jnp.fft.fft(x, 3)), jnp.abs(jnp.fft.rfft(x)), jnp.abs(jnp.fft.ihfft(x))
        random.choice(key, x, (2,), p=nn.softmax(x)), random.permutation(key, x), random.categorical(key, x)
        lax.dynamic_index_in_dim(x, -1), lax.dynamic_slice_in_dim(x, 1, 1), lax.shape_as_value(x.shape)
        lax.dynamic_update_slice_in_dim(x, x[:1], -1, 0), lax.top_k(x, 1), lax.cumsum(x)
        ops.segment_sum(x, jnp.zeros(x.shape, int), 3), ops.segment_max(x, jnp.ones(x.shape, int), 3)
        signal.fftconvolve(x, x), special.logsumexp(x), nn.softmax(x), nn.one_hot(jnp.argmax(x), x.shape[0])
        """,
    ("b", "c"): """
        jnp.concatenate([x[-1:], y[:-1]]), jnp.arange(x.shape[0], y.shape[0]), jnp.isin(x, y)
        linalg.toeplitz(x, y), linalg.hankel(x, y), signal.fftconvolve(x, y), jnp.kron(x, y)
        """,
    ("2*b",): """
        x[-1], x[-2:], x.at[0].set(2.0), x[x.shape[0] // 2 :], x.reshape(2, -1)[:, -1], lax.top_k(x, 2)
        jnp.split(x, 2), jnp.delete(x, -2), image.resize(x, (3,), "linear"), jnp.resize(x, (x.shape[0] // 2,))
        jnp.squeeze(x), x[None].squeeze(), lax.squeeze(x[:, None]), jnp.cov(x), jnp.cov(jnp.outer(x, x))
        """,
    ("b, 3",): """
        x.at[-2:, np.array([0, -1])].add(1.0), x[-2:, np.array([0, -1])], jnp.take(x, -1, axis=0)
        x[-1], x[:, -1], x[-2:, ::2], x.at[-1, 1:].set(3.0), x.at[::2, -1].multiply(2.0)
        jnp.delete(x, 0, axis=0), jnp.delete(x, 1, axis=1), jnp.insert(x, 0, jnp.ones(3), axis=0)
        image.resize(x, (4, 2), "linear"), image.resize(x, (2 * x.shape[0], 5), "cubic")
        jnp.trace(x), jnp.diagonal(x, 1), jnp.tril(x), jnp.cov(x, x), jnp.cumsum(x, 0), jnp.flip(x), jnp.rot90(x)
        image.resize(x, (4, 3), "nearest"), image.resize(x, (2, 2), "area"), image.resize(x, (3, 3), "lanczos3")
        la.svd(x, full_matrices=False)[1], la.pinv(x), la.matrix_rank(x)
        lax.scan(lambda c, r: (c + r[-1], c), 0.0, x), corejax.vmap(lambda r: r[-2:] * r[0])(x)
        """,
    ("b, b",): """
        la.qr(x, mode="r") ** 2, la.det(x), la.inv(x), tuple(la.slogdet(x)), la.solve(x, x[0]), la.solve(x, x[:, -2:])
        linalg.lu_solve(linalg.lu_factor(x), x[0]), linalg.solve_triangular(x, x[0], lower=True)
        linalg.cho_solve(linalg.cho_factor(x @ x.T), x[0]), linalg.lu(x)[2], linalg.polar(x, method="svd")[1]
        la.matrix_power(x, 3), linalg.expm(x / 9), la.cholesky(x @ x.T), la.eigvalsh(x + x.T), la.cond(x)
        jnp.linalg.norm(x, 2), jnp.linalg.norm(x, "nuc"), jnp.linalg.multi_dot([x, x, x[:, 0]])
        """,
}


def expressions(shapes: tuple[str, ...]) -> list[str]:
    return [line.strip() for line in CASES[shapes].strip().splitlines()]


def function(text: str) -> Callable[..., Any]:
    """The function of an expression; what in it is no array is left out."""
    code = eval(f"lambda x, y=None: ({text},)", dict(ROOMS))
    return lambda *args: [leaf for leaf in corejax.tree.leaves(code(*args)) if not callable(leaf)]


def exported(fun: Callable[..., Any], shapes: tuple[str, ...], vjp_order: int = 0) -> Any:
    scope = SymbolicScope()
    types = [corejax.ShapeDtypeStruct(symbolic_shape(text, scope=scope), np.float32) for text in shapes]
    return export.deserialize(export.export(corejax.jit(fun))(*types).serialize(vjp_order))


def arguments(shapes: tuple[str, ...], b: int) -> list[Any]:
    rng = np.random.default_rng(0)
    made = [rng.uniform(0.2, 1.0, size=eval(f"({text},)", {"b": b, "c": b + 1})) for text in shapes]
    if shapes == ("b, b",):  # well conditioned
        made = [x + 2 * np.eye(b) for x in made]
    return [jnp.asarray(x.astype(np.float32)) for x in made]


def check_same(got: Any, wanted: Any, text: str) -> None:
    for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), text
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=text)


@pytest.mark.parametrize("shapes", CASES, ids=str)
def test_values_are_those_of_direct_calls(shapes: tuple[str, ...]) -> None:
    texts = expressions(shapes)[::3]
    functions = [function(text) for text in texts]
    found = exported(lambda *args: [f(*args) for f in functions], shapes)
    args = arguments(shapes, 4)
    for got, fun, text in zip(found.call(*args), functions, texts, strict=True):
        check_same(got, fun(*args), text)


@pytest.mark.slow
@pytest.mark.parametrize(("shapes", "text"), [(shapes, text) for shapes in CASES for text in expressions(shapes)])
def test_each_function_and_its_gradient(shapes: tuple[str, ...], text: str) -> None:
    fun = function(text)

    def total(fun: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in fun(*args) if jnp.issubdtype(y.dtype, jnp.floating))

    found = exported(fun, shapes, 1)
    for b in (1, 2, 3, 7):
        args = arguments(shapes, b)
        try:
            wanted = fun(*args)
        except (IndexError, ValueError):  # an index that is out of bounds for so few elements
            continue
        check_same(found.call(*args), wanted, f"{text} at {b}")
        check_same(*(corejax.grad(total(f))(*args) for f in (found.call, fun)), text=f"gradient of {text} at {b}")


LOOP = pytest.param(lambda f: lambda x: corejax.lax.map(f, x), marks=pytest.mark.slow, id="map")


@pytest.mark.parametrize(
    "text",
    [
        "random.permutation(key, x)",
        "jnp.interp(x, x, x)",
        "jnp.abs(jnp.fft.rfft(x))",
        "jnp.fft.irfft(x + 0j, 2 * x.shape[0])",
        "jnp.fft.irfft(x + 0j, 2 * x.shape[0] + 1)",
    ],
)
def test_gradients_at_each_size(text: str) -> None:
    fun = function(text)
    found = exported(fun, ("b",), 1)
    for b in (1, 2, 3, 4):
        args = arguments(("b",), b)
        weighted = [lambda x, f=f: jnp.dot(f(x)[0], jnp.arange(1.0, f(x)[0].size + 1)) for f in (found.call, fun)]
        check_same(*(corejax.grad(f)(*args) for f in weighted), text=f"gradient of {text} at {b}")


def test_cumulative_maxima_have_values_and_no_gradients() -> None:
    fun = function("lax.cummax(x)")
    check_same(exported(fun, ("b",)).call(*arguments(("b",), 3)), fun(*arguments(("b",), 3)), "cummax")
    with pytest.raises(InconclusiveDimensionOperation, match="whether b >= 2"):
        exported(fun, ("b",), 1)


@pytest.mark.parametrize("wrap", [corejax.vmap, LOOP])
def test_functions_in_transformations(wrap: Callable[..., Any]) -> None:
    def of_row(r: Any) -> Any:
        return jnp.sum(r[-2:] ** 2) + jnp.linalg.det(jnp.outer(r, r) + jnp.eye(r.shape[0])) + jnp.delete(r, 0).sum()

    fun = wrap(corejax.value_and_grad(of_row))
    args = arguments(("b, c",), 3)
    check_same(exported(fun, ("b, c",)).call(*args), fun(*args), "a row's gradient")


# -- what has to know a size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shapes", "said"),
    [
        ("jnp.unstack(x)", ("b",), r"unstack: the size b is needed as an integer.*\(its argument x is f32\[b\]\)"),
        ("signal.detrend(x)", ("b + 1",), r"detrend: the size b \+ 1 .*\(its argument data is f32\[b \+ 1\]\)"),
        ("linalg.hilbert(x.shape[0])", ("b",), r"hilbert: the size b is needed .*\(its argument n is b\)"),
        ("jnp.tril_indices(x.shape[0])", ("b",), r"tril_indices: the number of indices .* n = b"),
        (
            "random.choice(key, x, (9,), replace=False)",
            ("b",),
            r"choice: whether b >= 9 .*\(its argument a is f32\[b\]\)",
        ),
        ("jnp.convolve(x, y)", ("b", "c"), r"convolve: whether b >= c .*\(its argument a is f32\[b\]\)"),
        ("lax.top_k(x, 3)", ("b",), r"top_k: whether b >= 3 .*\(its argument operand is f32\[b\]\)"),
        ("x.reshape(2, -1)", ("3*b",), r"whether mod\(3\*b, 2\) is 0"),
    ],
)
def test_who_asks_for_a_size_is_told(text: str, shapes: tuple[str, ...], said: str) -> None:
    with pytest.raises(InconclusiveDimensionOperation, match=said):
        exported(function(text), shapes)


# -- every public function -----------------------------------------------------------------------------------------

NAMESPACES = (
    *("numpy", "lax", "nn", "numpy.linalg", "numpy.fft", "lax.linalg", "image", "ops", "random"),
    *("scipy.linalg", "scipy.special", "scipy.signal", "scipy.ndimage", "scipy.integrate", "scipy.fft"),
)
OPERANDS = (
    *((shape,) for shape in ("b", "b, 3", "3, b", "b, b", "2*b")),
    *(("b", "b"), ("b, 3", "b, 3"), ("b, 3", "3, c"), ("b, b", "b"), ("b", "c"), ("b", 1), ("b", -1), ("b, 3", 1)),
    *(("b", "b", "b"), ("b", 0, 2.0)),
)
# Errors that say that values, or more than a size, have to be known: also at an integer size, if it is traced.
REFUSED = (corejax.errors.ConcretizationTypeError, InconclusiveDimensionOperation, NotImplementedError)


def public_functions(namespace: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    room = functools.reduce(getattr, namespace.split("."), corejax)
    for name in sorted(dir(room)):
        if not name.startswith("_") and callable(getattr(room, name)) and not inspect.isclass(getattr(room, name)):
            yield name, getattr(room, name)


@pytest.mark.slow
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_is_exported_or_refuses_the_size(namespace: str) -> None:
    wrong = []
    for name, fun in public_functions(namespace):
        for operands in OPERANDS:
            shapes = tuple(x for x in operands if isinstance(x, str))

            def call(*args: Any, fun: Any = fun, operands: Any = operands) -> Any:
                arrays = iter(args)
                first = [corejax.random.key(0)] if namespace == "random" else []
                return fun(*first, *(next(arrays) if isinstance(x, str) else x for x in operands))

            try:
                corejax.jit(call).trace(*arguments(shapes, 6))
            except Exception:  # it takes other arguments
                continue
            try:
                exported(call, shapes)
            except REFUSED:
                continue
            except Exception as error:
                if "register_namedtuple_serialization" in str(error):  # exported, but not serialized
                    continue
                wrong.append(f"{name} of {operands}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    assert wrong == []
