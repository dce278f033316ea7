"""The kit on primitives of other sorts: derived rules only, effects, state, without sensible examples."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import Example, Primitive, ShapedArray, defvectorized
from corejax_testing import verify
from corejax_testing.checks import compositions
from corejax_testing.transformations import COND, GRAD, JIT, JVP, SCAN, VMAP, WHILE, is_installed
from tests.testing_kit.toys import CHECKS, same

EXAMPLES = [Example((ShapedArray((3,), np.dtype(np.float32)),), low=0.5)]


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def test_derived_rules_only() -> None:
    primitive = Primitive("toy.cube", decomposition=lambda x: x * x * x, tags=("elementwise",))
    results = {r.check: r for r in verify(primitive, EXAMPLES, checks=CHECKS, quick=True)}
    assert not [r.report() for r in results.values() if r.status in ("failed", "missing rule")]
    derived = {name: r.derived for name, r in results.items() if r.derived}
    assert derived["jvp"] == derived["vmap"] == derived["xla"] == derived["types"] == "decomposition"
    assert results["untouched"].status == "not applicable"


def test_effectful_primitive_with_state() -> None:
    """What it gives may depend on what it has done; that it does it is what counts."""
    done: list[None] = []

    def impl(x: np.ndarray) -> np.ndarray:
        done.append(None)
        return np.full_like(x, len(done))

    primitive = Primitive("toy.clock", impl=impl, abstract_eval=same, effects=("toy.time",))
    results = {r.check: r for r in verify(primitive, EXAMPLES, checks=["types", "pure", "effects", "text", "params"])}
    assert [r.report() for r in results.values() if r.failed] == []
    assert results["effects"].status == results["pure"].status == "passed"


def test_batches_of_effects_in_branches_are_not_asked_for() -> None:
    primitive = Primitive("toy.told", impl=lambda x: 2 * x, abstract_eval=same, effects=("toy.tell",))
    defvectorized(primitive)
    results = list(verify(primitive, EXAMPLES, checks=["vmap", "pairs", "triples", "effects"], quick=True))
    assert [r.report() for r in results if r.failed] == []
    assert [r.status for r in results] == ["passed"] * 4


def test_stateful_primitive_without_effects_fails() -> None:
    done: list[None] = []

    def impl(x: np.ndarray) -> np.ndarray:
        done.append(None)
        return np.full_like(x, len(done))

    primitive = Primitive("toy.clock", impl=impl, abstract_eval=same)
    (result,) = verify(primitive, EXAMPLES, checks=["pure"])
    assert result.failed


def test_higher_order_primitive() -> None:
    (types, pairs) = verify(corejax.extend.primitives["scan"], checks=["types", "partial_eval"], quick=True)
    assert types.status == pairs.status == "passed"


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (Example((ShapedArray((3,), "int32"),)), "abstract eval refuses an example"),
        (Example(EXAMPLES[0].operands, skip={"jpv": "no"}), "skips 'jpv', but there is no such check"),
        (Example(EXAMPLES[0].operands, low=2.0, high=1.0), "range of operand 0 is empty: low=2.0, high=1.0"),
        (Example(EXAMPLES[0].operands, low=()), "gives no range for operand 0"),
    ],
)
def test_examples_that_make_no_sense(example: Example, words: str) -> None:
    primitive = Primitive("toy.tanh", impl=np.tanh, abstract_eval=same)
    (result,) = verify(primitive, [example], checks=["examples"])
    assert result.failed
    assert words in result.message


def test_compositions_say_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compositions, "is_installed", lambda t: is_installed(t) and t.name != "scan")
    (result,) = verify(corejax.extend.primitives["neg"], EXAMPLES, checks=["triples"])
    assert result.status == "passed"
    assert result.note.startswith("without scan") and result.note.endswith(": not installed")


def test_transformations_join_by_their_exported_names() -> None:
    from corejax.extend.plugins import exported

    assert is_installed(JIT) and is_installed(COND) and is_installed(GRAD)
    assert is_installed(WHILE) == (exported("lax.while_loop") is not None)
    assert hasattr(lax, "scan") == is_installed(SCAN)


def test_loops_of_unknown_length_have_no_reverse_derivative() -> None:
    assert not compositions._has_meaning((WHILE, GRAD))
    assert not compositions._has_meaning((WHILE, JVP, GRAD))
    assert compositions._has_meaning((GRAD, WHILE))
    assert compositions._has_meaning((VMAP, WHILE, JVP))


def test_a_variation_that_is_refused_by_a_value_error_is_left_out() -> None:
    """As NumPy's users raise it for shapes: one of the hypothesis' shapes and dtypes, not a mistake."""

    def only_vectors(x: ShapedArray) -> ShapedArray:
        if x.ndim != 1 or x.dtype != np.float32:
            raise ValueError(f"toy.sorted takes f32[n], got {x.str_short()}")
        return x

    primitive = Primitive("toy.sorted", impl=np.sort, abstract_eval=only_vectors, tags=("elementwise",))
    (result,) = verify(primitive, EXAMPLES, checks=["types"])
    assert result.status == "passed" and result.applications > 1


@pytest.mark.skipif(not is_installed(COND), reason="no plugin has cond")
def test_nests_that_refuse_effects_are_left_out() -> None:
    def impl(x: np.ndarray) -> np.ndarray:
        return x + 1

    def vmap(axis_size: int, vals: list, dims: list) -> tuple:
        return primitive.bind(vals[0]), dims[0]

    primitive = Primitive("toy.noted", impl=impl, abstract_eval=same, vmap=vmap, effects=("toy.note",))
    (result,) = verify(primitive, EXAMPLES, checks=["pairs"])
    assert result.status == "passed", result.report()

    def broken(axis_size: int, vals: list, dims: list) -> tuple:
        raise NotImplementedError("not yet")

    corejax.extend.vmap_rules.register(primitive, broken, override=True)
    (result,) = verify(primitive, EXAMPLES, checks=["pairs"])
    assert result.status == "failed" and "not yet" in result.message
