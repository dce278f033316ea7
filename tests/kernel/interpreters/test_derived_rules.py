"""Rules derived from an impl and a type: vmap as a loop; what strict rules refuse, what warnings and misses say."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.arrays.structural import OperationTable, unrolled_loop
from corejax.cli.rule_status import rule_statuses
from corejax.errors import DerivedRuleWarning, MissingRuleError
from corejax.extend import Derivation, Primitive, ShapedArray, impl_rules, jvp_rules, transpose_rules, vmap_rules
from corejax.extend.transforms import structural, trace_stack
from corejax.settings.config import config

ignored = pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
_numbers = itertools.count()
M = np.arange(12, dtype=np.float32).reshape(3, 4)


def make(impl, abstract_eval, **options):
    return Primitive(f"derived_test.p{next(_numbers)}", impl=impl, abstract_eval=abstract_eval, **options)


class Sorted:
    """An opaque impl that counts its calls: sorted vectors."""

    def __init__(self):
        self.calls = []
        self.p = make(self.impl, self.type)

    def impl(self, x):
        self.calls.append(x.shape)
        return np.sort(x)

    def type(self, x):
        if x.ndim != 1:
            raise TypeError(f"sorted takes vectors, got {x.str_short()}")
        return x

    def __call__(self, x):
        return self.p.bind(x)


def fused(x, y, *, k):
    return [np.asarray(x.sum() * k + y.sum(), x.dtype), np.outer(x, y)]


def fused_type(x, y, *, k):
    return [ShapedArray((), x.dtype), ShapedArray((*x.shape, *y.shape), x.dtype)]


# -- vmap as a loop ------------------------------------------------------------------------------------------------


@ignored
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_eager_vmap_calls_the_impl_once_for_each_element(axis):
    f = Sorted()
    x = -M
    out = cj.vmap(f, axis, axis)(x)
    np.testing.assert_array_equal(out, np.sort(x, 1 - axis % 2))
    assert f.calls == [(4,)] * 3 if axis == 0 else [(3,)] * 4
    assert vmap_rules.rule_of(f.p).derived == "loop"


@ignored
def test_several_results_params_and_operands_that_are_not_mapped():
    p = make(fused, fused_type, multiple_results=True)
    y = np.array([1.0, 2.0], np.float32)
    total, outer = cj.vmap(lambda x, y: p.bind(x, y, k=3.0), (0, None), [0, 2])(M, y)
    np.testing.assert_allclose(total, M.sum(1) * 3 + 3)
    np.testing.assert_allclose(outer, np.einsum("bi,j->ijb", M, y))
    total, outer = cj.vmap(lambda y, x: p.bind(x, y, k=3.0), (None, 1))(y, M)
    assert total.shape == (4,) and outer.shape == (4, 3, 2)


@ignored
def test_batch_of_scalars_and_weak_types():
    p = make(lambda x: np.asarray(x * 2, x.dtype), lambda x: x)
    assert p.bind(2.0).aval.weak_type
    out = cj.vmap(p.bind)(np.arange(3, dtype=np.int16))
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert out.aval is ShapedArray((3,), np.int16)


@ignored
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.complex64, ml_dtypes.bfloat16])
def test_dtypes(dtype):
    out = cj.vmap(make(lambda x: x[::-1], lambda x: x).bind)(M.astype(dtype))
    np.testing.assert_array_equal(out, M.astype(dtype)[:, ::-1])
    assert out.dtype == dtype


@ignored
def test_empty_batch_takes_its_type_from_the_abstract_eval_rule():
    p = make(fused, fused_type, multiple_results=True)
    x = np.zeros((0, 3), np.float32)
    for f in (lambda f: f, cj.jit):
        total, outer = f(cj.vmap(lambda x: p.bind(x, x, k=1.0)))(x)
        assert total.shape == (0,) and outer.shape == (0, 3, 3) and outer.dtype == np.float32
    with pytest.raises(TypeError, match="sorted takes vectors"):
        cj.vmap(Sorted())(np.zeros((0, 2, 2), np.float32))


@ignored
def test_nested():
    f = Sorted()
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(cj.vmap(cj.vmap(f))(x), np.sort(x))
    assert f.calls == [(4,)] * 6
    np.testing.assert_array_equal(cj.vmap(cj.vmap(f, 1, 1), 2, 0)(x), np.moveaxis(np.sort(x, 0), 2, 0))
    np.testing.assert_array_equal(cj.vmap(cj.vmap(cj.vmap(f)))(x[None]), np.sort(x)[None])


@ignored
def test_under_staging_the_program_has_a_loop():
    f = Sorted()
    x = -np.arange(2000, dtype=np.float32).reshape(1000, 2)
    closed = cj.make_jaxpr(cj.vmap(f))(x)
    assert [e.primitive.name for e in closed.eqns] == ["scan"] and f.calls == []
    np.testing.assert_array_equal(cj.eval_jaxpr(closed.jaxpr, closed.consts, [x])[0], np.sort(x))
    nested = cj.make_jaxpr(cj.vmap(cj.vmap(f, 1, 1)))(x.reshape(10, 10, 20))
    assert len(nested.eqns) < 5
    assert cj.make_jaxpr(cj.vmap(f))(x[:1]).out_avals == [ShapedArray((1, 2), np.float32)]


@ignored
def test_closed_over_tracers_and_python_scalars():
    p = make(lambda x, y: np.asarray(x * y, x.dtype), lambda x, y: x)
    x, y = np.arange(3, dtype=np.float32), np.float32(2)
    f = lambda x, y: cj.vmap(lambda x: p.bind(x, y))(x)
    np.testing.assert_array_equal(f(x, y), x * 2)
    np.testing.assert_array_equal(cj.jit(f)(x, y), x * 2)
    np.testing.assert_array_equal(cj.vmap(f, (None, 0))(x, x), np.outer(x, x))
    np.testing.assert_array_equal(cj.vmap(lambda x: p.bind(x, 2.0))(x), x * 2)


@ignored
def test_a_jvp_rule_beside_the_loop():
    p = make(np.square, lambda x: x, jvp=lambda primals, tangents: (p.bind(*primals), tangents[0] * 2 * primals[0]))
    x = np.arange(3, dtype=np.float32)
    for f in (lambda f: f, cj.jit):
        np.testing.assert_allclose(f(cj.vmap(cj.grad(p.bind)))(x), 2 * x)
        np.testing.assert_allclose(f(cj.grad(lambda x: cj.vmap(p.bind)(x).sum()))(x), 2 * x)
        np.testing.assert_allclose(f(cj.jacfwd(cj.vmap(p.bind)))(x), np.diag(2 * x))


@ignored
def test_in_bodies_of_scan_and_cond():
    f = Sorted()
    body = lambda carry, x: (carry, cj.vmap(f)(x))
    x = -np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(lax.scan(body, 0.0, x)[1], np.sort(x))
    np.testing.assert_array_equal(lax.cond(True, cj.vmap(f), lambda x: x, x[0]), np.sort(x[0]))


@ignored
def test_errors_of_the_impl_leave_the_stack_clean():
    def impl(x):
        raise ZeroDivisionError

    p = make(impl, lambda x: x)
    with pytest.raises(ZeroDivisionError):
        cj.vmap(p.bind)(M)
    wrong = make(lambda x: x.astype(np.float64), lambda x: x)
    with pytest.raises(TypeError, match=r"its impl rule returned float64\[4\], but its abstract-eval rule promises"):
        cj.vmap(wrong.bind)(M)
    assert len(trace_stack()) == 1


@ignored
def test_effects():
    seen = []
    p = make(lambda x: seen.append(float(x)) or x, lambda x: x, effects=("log",))
    cj.vmap(p.bind)(np.arange(3, dtype=np.float32))
    assert seen == [0, 1, 2]
    ordered = make(lambda x: x, lambda x: x, effects=("ordered:log",))
    with pytest.raises(MissingRuleError, match=r"no vmap rule[\s\S]*and no ordered effects"):
        cj.vmap(ordered.bind)(M)


@pytest.mark.usefixtures("toys")
def test_eager_vmap_needs_no_plugin():
    f = Sorted()
    with pytest.warns(DerivedRuleWarning):
        np.testing.assert_array_equal(cj.vmap(f)(-M), np.sort(-M))


@ignored
def test_without_a_loop_operation_it_is_unrolled(monkeypatch):
    monkeypatch.setattr(structural, "loop", unrolled_loop)
    f = Sorted()
    names = [e.primitive.name for e in cj.make_jaxpr(cj.vmap(f))(M).eqns]
    assert names.count(f.p.name) == 3 and "scan" not in names
    np.testing.assert_array_equal(cj.jit(cj.vmap(f))(-M), np.sort(-M))


def test_operations_on_concrete_values_need_no_plugin():
    table = OperationTable()
    part = table.index_axis(M, 1, -1)
    np.testing.assert_array_equal(part, M[:, 1])
    np.testing.assert_array_equal(table.stack([part, part], 1), np.stack([M[:, 1]] * 2, 1))
    np.testing.assert_array_equal(table.loop(lambda x: [x], 3, [M])[0], M)
    assert structural.index_axis(np.arange(3), 1, 0).shape == ()


# -- warnings, strictness, misses ----------------------------------------------------------------------------------


def test_warns_once_at_the_users_line():
    f = Sorted()
    with pytest.warns(DerivedRuleWarning) as caught:
        cj.vmap(f)(M)
        cj.vmap(f)(M)
        cj.vmap(cj.vmap(f))(M[None])
    [warning] = caught
    message = str(warning.message)
    assert message.startswith(f"primitive '{f.p.name}' (from module {__name__}) has no vmap rule: vmap applies it to ")
    assert "@vmap_rules.register(" in message and f.p.name.replace(".", "_") in message
    assert warning.filename == __file__


def test_warns_again_for_another_primitive_and_not_for_own_or_decomposed_rules():
    with pytest.warns(DerivedRuleWarning):
        cj.vmap(Sorted())(M)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cj.vmap(make(np.sin, lambda x: x, vmap=lambda n, xs, ds: (np.sin(xs[0]), ds[0])).bind)(M)
        decomposed = Primitive(f"derived_test.p{next(_numbers)}", decomposition=lambda x: lax.sin(x))
        cj.vmap(decomposed.bind)(M)


def test_a_written_rule_wins_at_any_time():
    f = Sorted()
    with pytest.warns(DerivedRuleWarning):
        cj.vmap(f)(M)
    vmap_rules.register(f.p, lambda n, xs, ds: (xs[0] * 0, ds[0]))
    assert not np.any(cj.vmap(f)(M))
    assert vmap_rules.rule_of(f.p).derived is None


def test_strict_rules_refuse_the_loop_even_if_it_ran_before():
    f = Sorted()
    for _ in range(2):
        with config.override(strict_rules=True):
            with pytest.raises(MissingRuleError) as info:
                cj.vmap(f)(M)
            assert rule_statuses(f.p)["vmap"].status == "missing"
        assert "(derived rules are refused: config.strict_rules, here the one by loop)" in str(info.value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DerivedRuleWarning)
            cj.vmap(f)(M)


# -- rules that an author has made by a derivation, by its name -------------------------------------------------


def test_a_loop_that_is_meant_is_an_own_rule():
    f = Sorted()
    vmap_rules.register(f.p, by="loop")
    with warnings.catch_warnings(), config.override(strict_rules=True):
        warnings.simplefilter("error")
        np.testing.assert_array_equal(cj.vmap(cj.vmap(f))(M[None, ::-1]), np.sort(M[None, ::-1], -1))
        found = rule_statuses(f.p)["vmap"]
    assert found.status == "own" and found.rule.flags == {"by": "loop"}
    assert found.rule.provenance.module == __name__ and found.rule.provenance.file == __file__
    assert len(f.calls) == 3


def test_a_rule_by_a_derivation_keeps_the_flags_of_the_derivation():
    p = Primitive(f"derived_test.p{next(_numbers)}", decomposition=lambda x, y: lax.mul(x, y))
    impl_rules.register(p, by="decomposition")  # given Arrays, not NumPy's
    jvp_rules.register(p, by="decomposition")  # given None for zero tangents
    with config.override(strict_rules=True):
        assert rule_statuses(p)["jvp"].status == rule_statuses(p)["impl"].status == "own"
    np.testing.assert_allclose(p.bind(np.float32(3), np.float32(2)), 6)
    assert cj.grad(lambda x: p.bind(x, 2.0))(3.0) == 2


def test_what_cannot_be_made_by_that_name():
    f = Sorted()
    vmap_rules.register(f.p, by="lop")
    with pytest.raises(MissingRuleError, match=r"vmap rule by 'lop', which cannot be derived: there are .*'loop'"):
        cj.vmap(f)(M)
    vmap_rules.register(f.p, by="decomposition", override=True)
    with pytest.raises(
        MissingRuleError, match=r"by 'decomposition', which cannot be derived: it needs a decomposition"
    ):
        cj.vmap(f)(M)
    vmap_rules.unregister(f.p)
    vmap_rules.unregister(f.p)
    assert vmap_rules.rule_of(f.p) is None
    with pytest.raises(TypeError, match="by 'loop' takes no function, platform or flags"):
        vmap_rules.register(f.p, lambda n, xs, ds: (xs[0], ds[0]), by="loop")


def test_the_warning_says_how_to_mean_it():
    with pytest.warns(DerivedRuleWarning, match="register it with by='loop' instead of a function"):
        cj.vmap(Sorted())(M)


def test_jvp_of_an_opaque_impl_says_what_would_supply_it():
    f = Sorted()
    with pytest.raises(MissingRuleError) as info:
        cj.grad(lambda x: f(x).sum())(M[0])
    message = str(info.value)
    assert "has no JVP rule" in message and "@jvp_rules.register(" in message
    assert message.endswith("Or give the primitive something from which the rule can be derived: a decomposition.")
    assert info.value.kind == "jvp" and info.value.primitive is f.p


def test_vmap_without_a_type_says_so():
    p = Primitive(f"derived_test.p{next(_numbers)}", impl=np.sin)
    with pytest.raises(MissingRuleError, match="a decomposition; or an impl and an abstract-eval rule"):
        vmap_rules.lookup(p)


# -- marks ---------------------------------------------------------------------------------------------------------


def test_marks_without_side_effects():
    f = Sorted()
    before = {kind: {**r._written, **r._derived} for kind, r in cj.extend.registries.items()}
    found = rule_statuses(f.p)
    shown = {kind: (c.status, c.derivation) for kind, c in found.items() if c.status in ("derived", "missing")}
    shown.pop("checkify", None)  # a plugin's kind, where that is loaded
    assert shown == {
        "jvp": ("missing", None),
        "vmap": ("derived", "loop"),
        "xla_translation": ("derived", "host callback"),
    }
    after = {kind: {**r._written, **r._derived} for kind, r in cj.extend.registries.items()}
    assert f.p not in vmap_rules.table and f.calls == []
    assert {k: set(v) for k, v in after.items()} == {k: set(v) for k, v in before.items()}


def test_flags_of_a_derivation_are_what_register_takes():
    made = []
    registry = impl_rules
    derivation = Derivation(
        "test", lambda p: (lambda x: made.append(type(x)) or x) if p is mine else None, flags={"device": True}
    )
    mine = Primitive(f"derived_test.p{next(_numbers)}", abstract_eval=lambda x: x)
    registry.derivations.append(derivation)
    try:
        mine.bind(M)
        assert made == [cj.Array] and registry.rule_of(mine).flags == {"device": True}
    finally:
        registry.derivations.remove(derivation)
    assert registry.rule_of(mine) is None, "what is derived goes with what it was derived by"


def test_listing_does_not_import_jaxlib():
    pytest.importorskip("corejax_explain")
    program = """
import sys
from corejax.cli import main
from corejax.extend import Primitive, ShapedArray
Primitive("mine.opaque", impl=lambda x: x, abstract_eval=lambda x: x)
Primitive("mine.compiled", abstract_eval=lambda x: x)
main(["list-primitives"], standalone_mode=False)
main(["show", "mine.opaque"], standalone_mode=False)
assert not any(name.partition(".")[0] in ("jaxlib", "jax") for name in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "vmap                derived       by loop" in done.stdout
    assert "xla_translation     derived       by host callback" in done.stdout


def test_decompositions_keep_their_zeros_symbolic():
    p = Primitive(f"derived_test.p{next(_numbers)}", decomposition=lambda x, y: lax.sin(x))
    assert cj.grad(lambda x: p.bind(x, 1.0))(0.0) == 1
    assert jvp_rules.rule_of(p).flags == {"symbolic_zeros": True}
    assert transpose_rules.can_derive(p) == "decomposition"
