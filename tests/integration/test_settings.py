"""Settings do not reach into the library: what it computes with is its own matter, what users give is checked.

Every example of the reference is run under each setting and prints what it prints without, or a function that the
example calls refuses its operands under its own name.
"""

from __future__ import annotations

import doctest
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import config, lax, random, tree
from corejax.dtypes import TypePromotionError
from corejax.extend import primitives
from corejax_testing.calls import Call
from corejax_testing.outcomes import NotApplicable
from tests.integration.samples import names_of, samples
from tools.site import examples, namespaces

SETTINGS: dict[str, dict[str, Any]] = {
    "ranks": {"numpy_rank_promotion": "raise"},
    "dtypes": {"numpy_dtype_promotion": "strict"},
    "nans": {"debug_nans": True},
    "infs": {"debug_infs": True},
}
OTHERS: dict[str, dict[str, Any]] = {
    "jaxprs": {"check_jaxprs": True},
    "rules": {"remember_rules": False},
    "keys": {"legacy_prng_key": "error"},
    "precision": {"default_matmul_precision": "highest"},
    "linalg": {"linalg_errors": True},
    "frequent": {"compile_frequent": True},
    "overrides": {"rule_overrides": False},
}
NAMESPACES = [name for name in namespaces.namespaces() if examples.file_of(name).exists()]
# Those with much library code of their own; the others are slow tests.
OFTEN = ("experimental.ode", "image", "nn.initializers", "scipy.linalg", "scipy.signal", "scipy.stats")
# Examples that show settings, make NaNs themselves, have operands refused under the name "vectorized", or register a
# name, which can be done once.
LEFT_OUT_EXAMPLES = {"numpy_dtype_promotion", "numpy_rank_promotion", "legacy_prng_key", "custom_jvp", "check", "Error"}
LEFT_OUT_EXAMPLES |= {"debug_check", "checkify", "check_error", "vectorize"}
LEFT_OUT_EXAMPLES |= {"register_namedtuple_serialization", "register_pytree_node_serialization"}
SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul", "**": "pow"}


def refuses_by_name(statement: str, printed: str) -> bool:
    """Whether a function that a statement calls refuses the operands, or has a NaN in its result."""
    found = re.search(r"^(TypePromotionError|ValueError): ([\w./]+): .*promotion", printed, re.MULTILINE)
    called = found and found[2].rpartition(".")[2]
    return bool(called and (called in statement or any(s in statement for s, n in SIGNS.items() if n == called)))


def changed_by(settings: dict[str, Any], namespace: str, name: str, text: str) -> Iterator[str]:
    """What an example prints under settings and should not."""
    with config.override(**settings):
        printed = examples.failures(namespace, name, text)
    by_line = {s.lineno: s for s in doctest.DocTestParser().get_examples(text, name)}
    for line, got in printed.items():
        if "debug_nans" in settings or "debug_infs" in settings:
            refused = "FloatingPointError: invalid value" in got and re.search(r"\b(nan|inf)\b", by_line[line].want)
        else:
            refused = refuses_by_name(by_line[line].source, got)
        if refused:
            return  # later statements need the result
        yield f"{namespace}.{name}, {by_line[line].source.strip()}: {got.strip().splitlines()[-1]}"


def slow_but(namespace: str, setting: str) -> Any:
    often = namespace in OFTEN and setting in SETTINGS
    return pytest.param(namespace, setting, marks=() if often else pytest.mark.slow)


@pytest.mark.parametrize(
    "namespace, setting", [slow_but(one, setting) for setting in (SETTINGS | OTHERS) for one in NAMESPACES]
)
def test_examples_print_the_same(namespace: str, setting: str) -> None:
    wrong = [
        line
        for name, text in examples.read(namespace).items()
        if name not in LEFT_OUT_EXAMPLES
        for line in changed_by((SETTINGS | OTHERS)[setting], namespace, name, text)
    ]
    assert not wrong, "\n".join(wrong)


# -- derivatives and batches of primitives, on the kit's samples -------------------------------------------------------

OFTEN_PRIMITIVES = ("cumlogsumexp", "eigh", "igamma", "pow", "qr", "select_and_gather_add")
WIDER: dict[str, dict[str, Any]] = {
    "64 bits": {"default_dtype_bits": 64},
    "32 bits": {"x64_compat": True},
}
WIDE_DTYPES = (np.dtype(np.float64), np.dtype(np.complex128))
PRIMITIVES = [name for plugin in ("lax_basic", "linalg", "fft") for name in names_of(plugin)]


def ways(call: Call) -> dict[str, Callable[[], Any]]:
    """A primitive on its sample: evaluated, compiled, batched, and differentiated once and twice."""
    values = [jnp.asarray(v) for v in call.values]
    found: dict[str, Callable[[], Any]] = {
        "eager": lambda: call(*values),
        "jit": lambda: corejax.jit(lambda *xs: call(*xs))(*values),
        "vmap": lambda: corejax.vmap(lambda *xs: call(*xs))(*[lax.broadcast(x, (2,)) for x in values]),
    }
    try:
        fun, moving, _ = call.moving()
    except NotApplicable:
        return found
    arrays = [jnp.asarray(x) for x in moving]
    ones = [lax.full_like(x, 1) for x in arrays]  # here, where no setting changes their types
    cotangents = [lax.full_like(out, 1) for out in fun(*arrays)]

    def pulled(*xs: Any) -> Any:
        _, pull = corejax.vjp(fun, *xs)
        return pull(cotangents)

    return found | {
        "jvp": lambda: corejax.jvp(fun, arrays, ones),
        "vjp": lambda: pulled(*arrays),
        "jvp of vjp": lambda: corejax.jvp(pulled, arrays, ones),
    }


def shown(out: Any) -> list[tuple[str, bytes]]:
    return [(corejax.typeof(x).str_short(), np.asarray(x).tobytes()) for x in tree.leaves(out)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in OFTEN_PRIMITIVES else pytest.mark.slow) for n in PRIMITIVES],
)
def test_primitives_and_their_derivatives_are_the_same(name: str) -> None:
    if "higher_order" in primitives[name].tags:
        pytest.skip("it runs its author's program")
    call = next(iter(samples(name)))
    finite = True
    for way, run in ways(call).items():
        try:
            out = run()
        except Exception:  # what has no such rule
            continue
        finite &= all(np.isfinite(np.asarray(x)).all() for x in tree.leaves(out) if x.dtype.kind in "fc")
        for setting, values in (SETTINGS | WIDER).items():
            if setting == "32 bits" and any(x.dtype in WIDE_DTYPES for x in call.values):
                continue  # arrays that there are no more under this setting
            if finite or setting not in ("nans", "infs"):
                with config.override(**values):
                    assert shown(run()) == shown(out), (way, setting)


# -- what is the user's ------------------------------------------------------------------------------------------------

X, WIDE, SHORT = jnp.ones((3, 3)), np.ones((3, 3)), jnp.ones(3)


def polynomial(x: Any) -> Any:
    return jnp.polyfit(jnp.arange(5.0), jnp.arange(5.0) ** 2 * x, 2)


OPERANDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "operator": (lambda x, y: x + y, "add"),
    "reflected": (lambda x, y: x**y, "pow"),
    "ufunc": (jnp.multiply, "multiply"),
    "comparison": (lambda x, y: x < y, "lt"),
    "product": (lambda x, y: jnp.where(x > 0, x, y), "where"),
    "hands on": (jnp.allclose, "allclose"),
    "limits": (lambda x, y: jnp.clip(x, y), "clip"),
    "density": (corejax.scipy.stats.norm.pdf, "norm.pdf"),
    "special": (corejax.scipy.special.xlogy, "xlogy"),
    "mapped": (lambda x, y: corejax.vmap(jnp.maximum)(x[None], y[None]), "maximum"),
    "compiled": (lambda x, y: corejax.jit(jnp.subtract)(x, y), "subtract"),
    "in a loop": (lambda x, y: lax.map(lambda _: x * y, jnp.arange(2)), "mul"),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_users_are_refused_by_name(name: str) -> None:
    function, called = OPERANDS[name]
    for _ in range(3):  # what was allowed in the library, and remembered, does not count
        polynomial(2.0)
        function(X, SHORT), function(X, WIDE)
        with config.override(numpy_dtype_promotion="strict"):
            polynomial(2.0)
            function(X, X)
            with pytest.raises(TypePromotionError, match=rf"^{called}: no implicit promotion of float32 and float64"):
                function(X, WIDE)
        with config.override(numpy_rank_promotion="raise"):
            polynomial(2.0)
            function(X, X)
            with pytest.raises(ValueError, match=rf"^{called}: shapes .* differ in rank"):
                function(X, SHORT)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: jnp.concatenate([x, y]),
        jnp.matmul,
        jnp.linalg.solve,
        lambda x, y: jnp.einsum("ij,jk", x, y),
        lambda x, y: x.at[0].set(y[0]),
        lambda x, y: jnp.interp(x, x[0], y[0]),
        lambda x, y: jnp.digitize(x, y[0]),
        jnp.add.outer,
        lambda x, y: jnp.linspace(x, y, 3),
        lambda x, y: jnp.put(x, np.array([0]), y, inplace=False),
        lambda x, y: random.multivariate_normal(random.key(0), x[0], y),
        lambda x, y: x @ y,
    ],
)
def test_dtypes_are_checked_by_functions_that_do_not_broadcast(function: Any) -> None:
    function(X, WIDE)
    with config.override(numpy_dtype_promotion="strict"):
        function(X, X)
        with pytest.raises(TypePromotionError, match=r"^\w+: no implicit"):
            function(X, WIDE)


def test_an_operation_of_a_function_and_of_a_user_are_remembered_apart() -> None:
    scales = jnp.linalg.eigh(jnp.eye(3) * 2)[0]
    with config.override(numpy_rank_promotion="raise"):
        for _ in range(4):
            corejax.scipy.stats.mode(jnp.zeros((3, 3)))  # subtracts arrays of two ranks
            with pytest.raises(ValueError, match=r"^sub: shapes"):
                jnp.zeros((3, 3)) - scales


# -- NaNs that the library leaves out ----------------------------------------------------------------------------------

NAN = jnp.array([1.0, math.nan, 3.0])
LEFT_OUT: dict[str, Callable[[], Any]] = {
    "median": lambda: jnp.nanmedian(NAN),
    "quantile": lambda: jnp.nanquantile(NAN, 0.5),
    "replaced": lambda: jnp.nan_to_num(NAN),
    "asked": lambda: jnp.isnan(NAN),
    "softmax": lambda: corejax.nn.softmax(SHORT, where=jnp.array([True, True, False])),
    "drawn": lambda: random.truncated_normal(random.key(0), -1.0, 1.0, (3,)),
    "masked rule": lambda: corejax.grad(lambda x: corejax.scipy.special.xlogy(x, 0.0) + x)(0.0),
    "gradient": lambda: corejax.grad(lambda v: jnp.nanmean(v) + jnp.nanmax(v))(NAN),
    "in a loop": lambda: lax.map(lambda x: jnp.nanmedian(x * NAN), SHORT),
    "compiled": lambda: corejax.jit(jnp.nanmedian)(NAN),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_the_library_leaves_out_is_no_error(name: str) -> None:
    run = LEFT_OUT[name]
    out = run()
    settings = {"debug_nans": True} if name == "masked rule" else {"debug_nans": True, "debug_infs": True}
    for _ in range(3):
        with config.override(**settings):
            assert shown(run()) == shown(out)


REACH: dict[str, tuple[Callable[[], Any], str]] = {
    "median": (lambda: jnp.median(NAN), "broadcast_in_dim|sort|select_n|is_finite"),
    "several": (lambda: jnp.linalg.eigh(jnp.eye(2) * math.nan), "mul"),
    "gradient": (lambda: corejax.grad(lambda x: jnp.sqrt(x) * 0)(0.0), "mul"),
    "second of two": (lambda: corejax.grad(lambda v: jnp.nanmean(v) + jnp.sqrt(v[0] - 1.0) * 0)(NAN), "mul"),
}


@pytest.mark.parametrize("name", REACH)
def test_what_reaches_a_result_is_one(name: str) -> None:
    run, primitive = REACH[name]
    run()
    with config.override(debug_nans=True), pytest.raises(FloatingPointError, match=rf"encountered in ({primitive})"):
        run()


def test_nothing_is_left_behind_and_profilers_go_on() -> None:
    import sys

    with config.override(debug_nans=True):
        jnp.nanmedian(NAN)
        assert sys.getprofile() is None
        with pytest.raises(ValueError, match="axis"):
            jnp.nanmedian(NAN, axis=3)
        assert sys.getprofile() is None
        seen: list[str] = []
        sys.setprofile(lambda frame, event, arg: seen.append(event))
        try:
            with pytest.raises(FloatingPointError):  # each operation is looked at
                jnp.nanmedian(NAN)
        finally:
            sys.setprofile(None)
        assert seen
