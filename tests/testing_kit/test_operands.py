"""Operands that only go together: examples say so, and every check and the fuzzer keep to it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax.lax as lax
import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, defvectorized, is_undef_primal, load_everything
from corejax_testing import verify
from corejax_testing.fuzzing import fuzz, replay

load_everything()
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


pytestmark = pytest.mark.usefixtures("nothing_is_left")


# -- rows of a sparse matrix: data and column indices, cut by an index pointer ---------------------------------------


def _is_sparse(x: Any, data: Any, indices: Any, indptr: Any) -> bool:
    steps = np.diff(indptr)
    whole = indptr[0] == 0 and indptr[-1] == len(data)
    return bool(whole and (steps >= 0).all() and (indices >= 0).all() and (indices < len(x)).all())


def _sparse_product(x: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """The matrix times x."""
    assert _is_sparse(x, data, indices, indptr), "operands that do not belong together"
    terms = data * x[indices]
    rows = [terms[a:b].sum() for a, b in itertools.pairwise(indptr)]
    return np.array(rows, data.dtype).reshape(len(indptr) - 1)


def _sparse() -> Primitive:
    def typed(x: ShapedArray, data: ShapedArray, indices: ShapedArray, indptr: ShapedArray) -> ShapedArray:
        if x.dtype != data.dtype or x.dtype.kind != "f" or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
            raise TypeError("sparse takes two arrays of one floating-point dtype and two of integers")
        if data.shape != indices.shape:
            raise TypeError("each number has a column index")
        return data.update(shape=(indptr.shape[0] - 1,), weak_type=False)

    def jvp(primals: Any, tangents: Any) -> Any:
        x, data, indices, indptr = primals
        dx, ddata, _, _ = tangents
        return p.bind(*primals), p.bind(x, ddata, indices, indptr) + p.bind(dx, data, indices, indptr)

    def transpose(ct: Any, x: Any, data: Any, indices: Any, indptr: Any) -> Any:
        count = indptr.aval.shape[0] - 1
        rows = jnp.sum(jnp.arange(indices.aval.shape[0])[:, None] >= indptr[None, 1:], axis=1)
        spread = (rows[:, None] == jnp.arange(count)[None, :]).astype(ct.dtype) @ ct
        columns = (indices[:, None] == jnp.arange(x.aval.shape[0])[None, :]).astype(ct.dtype)
        if is_undef_primal(data):
            return [None, spread * (columns @ x), None, None]
        return [(spread * data) @ columns, None, None, None]

    p = Primitive("toy.sparse", impl=_sparse_product, abstract_eval=typed, jvp=jvp, transpose=transpose)
    return p


SPARSE = Example(
    (ShapedArray((4,), F32), ShapedArray((5,), F32), np.array([0, 2, 1, 3, 0], I32), np.array([0, 2, 2, 5], I32))
)
DRAWN = Example(
    (*SPARSE.operands[:2], ShapedArray((5,), I32), ShapedArray((4,), I32)),
    low=(-2.0, -2.0, 0, 0), high=(2.0, 2.0, 3, 5),
    prepare=lambda x, data, indices, indptr: (x, data, indices, np.sort([0, *indptr[1:-1], 5])),
    requires=_is_sparse,
)  # fmt: skip


def _nothing_fails(primitive: Primitive, examples: list[Example], **more: Any) -> dict[str, str]:
    results = list(verify(primitive, examples, **more))
    assert [r.report() for r in results if r.failed] == []
    return {r.check: r.status for r in results}


@pytest.mark.parametrize("example", [SPARSE, DRAWN], ids=["given", "drawn"])
def test_sparse_product(example: Example) -> None:
    checks = ["examples", "types", "jvp", "transpose", "vjp", "vmap", "nested_vmap", "second_order", "pairs"]
    found = _nothing_fails(_sparse(), [example], quick=True, checks=checks)
    assert set(found.values()) == {"passed"}, found


@pytest.mark.parametrize("example", [SPARSE, DRAWN], ids=["given", "drawn"])
def test_programs_of_the_fuzzer_keep_to_it(example: Example) -> None:
    chosen = [_sparse(), lax.sin_p, lax.mul_p, lax.convert_element_type_p, lax.rev_p]
    summary = fuzz(chosen, programs=12, seed=3, examples={"toy.sparse": [example]},
                   relations=["eager", "vmap", "jvp", "vjp", "vmap of vmap", "eager of scan"])  # fmt: skip
    assert [failure.report() for failure in summary.failures] == []
    assert summary.primitives["toy.sparse"] >= 3


# -- a sorted table, a triangular matrix -----------------------------------------------------------------------------


def _search(table: Any, x: Any) -> Any:
    assert (np.diff(table) >= 0).all(), "the table is not sorted"
    return np.searchsorted(table, x).astype(I32)


@pytest.mark.parametrize(
    "words",
    [{"prepare": lambda table, x: (np.sort(table), x)},
     {"requires": lambda table, x: (np.diff(table) >= 0).all()}],
    ids=["prepare", "requires"],
)  # fmt: skip
def test_sorted_search(words: Any) -> None:
    def typed(table: ShapedArray, x: ShapedArray) -> ShapedArray:
        if table.dtype != x.dtype or table.dtype.kind == "c" or table.ndim != 1:
            raise TypeError("search takes two arrays of one real dtype")
        return x.update(dtype=I32, weak_type=False)

    p = Primitive("toy.search", impl=_search, abstract_eval=typed)
    example = Example((ShapedArray((4,), F32), ShapedArray((3,), F32)), reference=np.searchsorted, **words)
    checks = ("examples", "types", "values", "pure", "vmap", "nested_vmap", "splits", "xla", "pairs")
    found = _nothing_fails(p, [example], quick=True, checks=checks)
    assert found["values"] == found["vmap"] == found["nested_vmap"] == found["pairs"] == "passed"
    chosen = [p, lax.sin_p, lax.mul_p]
    summary = fuzz(chosen, programs=8, relations=["eager", "vmap"], examples={"toy.search": [example]})
    assert [failure.report() for failure in summary.failures] == []
    assert (summary.primitives["toy.search"] >= 3) == ("requires" in words)
    assert ("toy.search" in summary.without) == ("prepare" in words)


def test_triangular_solve() -> None:
    def typed(a: ShapedArray, b: ShapedArray, *, lower: bool) -> ShapedArray:
        if a.dtype != b.dtype or a.dtype.kind != "f" or a.shape != b.shape * 2:
            raise TypeError("solve takes a square matrix and a vector")
        return b.strip_weak_type()

    def half(a: Any, lower: bool) -> Any:
        return jnp.tril(a) if lower else jnp.triu(a)

    def impl(a: Any, b: Any, *, lower: bool) -> Any:
        matrix = np.tril(a) if lower else np.triu(a)
        return np.linalg.solve(matrix.astype(np.float64), b.astype(np.float64)).astype(b.dtype)

    def jvp(primals: Any, tangents: Any, *, lower: bool) -> Any:
        (a, b), (da, db) = primals, tangents
        x = p.bind(a, b, lower=lower)
        return x, p.bind(a, db - half(da, lower) @ x, lower=lower)

    def transpose(ct: Any, a: Any, b: Any, *, lower: bool) -> Any:
        return [None, p.bind(a.T, ct, lower=not lower)]

    p = Primitive("toy.solve", impl=impl, abstract_eval=typed, jvp=jvp, transpose=transpose, linear_in=(1,))
    examples = [
        Example((ShapedArray((3, 3), F32), ShapedArray((3,), F32)), {"lower": lower},
                prepare=lambda a, b, *, lower: (np.sign(a) * np.eye(3) + a, b))
        for lower in (True, False)
    ]  # fmt: skip
    checks = ["examples", "types", "jvp", "linearity", "transpose", "vjp", "vmap", "second_order"]
    found = _nothing_fails(p, examples, quick=True, checks=checks)
    assert set(found.values()) == {"passed"}, found


# -- what the kit says of it -----------------------------------------------------------------------------------------


def _cube() -> Primitive:
    return Primitive("toy.cube", decomposition=lambda x: x * x * x, tags=("elementwise",))


@pytest.mark.parametrize(
    ("words", "said"),
    [({"requires": lambda x: False}, "none of 200 draws"),
     ({"requires": lambda x, y: True}, "`prepare` or `requires` raises TypeError"),
     ({"prepare": lambda x: (x[1:],)}, "shapes (2,), but (3,) is right"),
     ({"prepare": np.sort}, "returns ndarray, but a tuple of operands is right"),
     ({"prepare": lambda x: (x, x)}, "shapes (3,), (3,), but (3,) is right")],
)  # fmt: skip
def test_words_that_make_no_sense(words: Any, said: str) -> None:
    example = Example((ShapedArray((3,), F32),), **words)
    results = {r.check: r for r in verify(_cube(), [example], quick=True)}
    assert results["examples"].failed and said in results["examples"].message
    assert [name for name, r in results.items() if r.failed] == ["examples"]


def test_wrong_rules_are_still_found_and_made_small_within_what_is_required() -> None:
    p = Primitive("toy.cube", impl=lambda x: x**3, abstract_eval=lambda x: x.strip_weak_type(),
                  jvp=lambda xs, ts: (p.bind(*xs), 2 * xs[0] ** 2 * ts[0]))  # fmt: skip
    example = Example((ShapedArray((3,), F32),), requires=lambda x: bool((np.abs(x) > 0.3).all()))
    (result,) = verify(p, [example], checks=["jvp"])
    assert result.failed and result.rule == "jvp" and "2/3 times" in result.hint


def test_arrays_that_the_author_gave_are_kept_in_nests() -> None:
    """Reversed, these indices would be others."""
    given = np.array([0, 0, 2], I32)
    seen: set[tuple[int, ...]] = set()

    def impl(x: Any, indices: Any) -> Any:
        seen.add(tuple(indices.tolist()))
        return x[indices]

    p = Primitive("toy.pick", impl=impl, abstract_eval=lambda x, indices: x.update(shape=indices.shape))
    _nothing_fails(p, [Example((ShapedArray((3,), F32), given))], checks=["vmap", "nested_vmap", "pairs", "triples"])
    assert seen == {(0, 0, 2)}


def test_differences_of_chaotic_iterations_are_no_failure() -> None:
    """x -> sin(a x), again and again: the derivative changes its sign within the step of a difference."""
    program = """
    { lambda ; a:f32[2] b:f32[4,2] . let
        c:f32[2] = scan[
          jaxpr={ lambda ; a:f32[2] b:f32[2] c:f32[2]. let
              d:f32[2] = mul b a
              e:f32[2] = sin d
            in (e,) }
          length=4
          linear=(False, False, False)
          num_carry=1
          num_consts=1
          reverse=True
          unroll=1
        ] a a b
      in (c,) }
    """
    for factor in (8.722689, 9.226891, 10.067227, 10.151261, 10.907563):
        values = [np.array([factor, -1.5], F32), np.zeros((4, 2), F32)]
        assert replay(program, values, "jvp") is None, factor


def test_wrong_derivatives_are_found_though_they_bend() -> None:
    p = Primitive("toy.wave", impl=np.sin, abstract_eval=lambda x: x.strip_weak_type(),
                  jvp=lambda xs, ts: (p.bind(*xs), 1.02 * jnp.cos(xs[0]) * ts[0]))  # fmt: skip
    defvectorized(p)
    summary = fuzz([p, lax.mul_p], programs=5, relations=["jvp"],
                   examples={"toy.wave": [Example((ShapedArray((3,), F32),))]})  # fmt: skip
    assert summary.failures


def test_python_numbers_in_a_decomposition_are_no_weak_types_of_its_own() -> None:
    for name, fun in (
        ("toy.halved", lambda x: x / 2),
        ("toy.raised", lambda x: x * 2 + 1.0),
        ("toy.ones", jnp.ones_like),
    ):
        p = Primitive(name, decomposition=fun, tags=("elementwise",))
        _nothing_fails(p, [Example((ShapedArray((3,), F32),))], checks=["types", "weak_types", "transpose"])
    p = Primitive("toy.ramp", decomposition=lambda x, y: jnp.where(x > 0, y, 0.0), tags=("elementwise",))
    _nothing_fails(p, [Example((ShapedArray((3,), F32),) * 2, low=0.2)], checks=["types", "weak_types", "transpose"])


def test_decompositions_that_are_linear_in_places_only() -> None:
    """Clipped numbers add up where all or none are clipped; a mean of nothing is no number."""
    p = Primitive("toy.clip", decomposition=lambda x: jnp.clip(x, -1, 1), tags=("elementwise",))
    _nothing_fails(p, [Example((ShapedArray((3,), F32),), low=-0.9, high=0.9)], checks=["transpose"])
    p = Primitive("toy.norm", decomposition=lambda x: jnp.sqrt(jnp.sum(x * x)))
    _nothing_fails(p, [Example((ShapedArray((3,), F32),), low=0.5)], checks=["jvp", "zeros", "vjp"], quick=True)
