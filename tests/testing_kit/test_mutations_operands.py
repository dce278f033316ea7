"""The kit finds rules that are wrong for what examples do not show: lengths, indices, branches, dtypes, axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
import corejax.numpy as jnp
from corejax.extend import (
    Example,
    Primitive,
    ShapedArray,
    jvp_rules,
    partial_eval_jaxpr_rules,
    primitives,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax.extend.programs import dce_rules
from corejax_testing import verify
from corejax_testing.variations import in_other_sizes
from tests.testing_kit import toys
from tests.testing_kit.toys import EXAMPLES, toy

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def _x(*shape: int, dtype: Any = F32) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _failed(primitive: Primitive, *checks: str, examples: Any = None) -> Any:
    found = next((r for r in verify(primitive, examples, checks=checks, quick=True) if r.failed), None)
    assert found is not None
    return found


def _replaced(registry: Any, name: str, change: Any) -> Primitive:
    """A first-party primitive with a rule made of its own."""
    primitive = primitives[name]
    before = registry.rule_of(primitive)
    registry.register(primitive, change(before.fn), override=True, **before.flags)
    return primitive


# -- lengths that differ ---------------------------------------------------------------------------------------------

EQUAL = {
    "transpose": [Example((_x(3, 3, 3),), {"permutation": (2, 0, 1)})],
    "dot_general": [
        Example((_x(2, 2, 2), _x(2, 2, 2)), {"dimension_numbers": (((2,), (1,)), ((0,), (0,))),
                                             "preferred_element_type": F32})
    ],
    "reduce_sum": [Example((_x(2, 2, 2),), {"axes": (0, 2)})],
    "concatenate": [Example((_x(2, 2), _x(2, 2)), {"dimension": 1})],
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_lengths_are_made_different(name: str) -> None:
    (example,) = EQUAL[name]
    shapes = [[x.shape for x in e.operands] for e in in_other_sizes(primitives[name], example)]
    wanted = {
        "transpose": [(3, 4, 5)],
        "dot_general": [(2, 3, 4), (2, 4, 5)],
        "reduce_sum": [(2, 3, 4)],
        "concatenate": [(2, 3), (2, 4)],
    }[name]
    assert wanted in shapes


def _wrong_transposes() -> dict[str, tuple[str, Any, Any]]:
    def same_permutation(rule: Any) -> Any:
        return lambda ct, x, *, permutation: [lax.transpose_p.bind(ct, permutation=permutation)]

    def batch_kept(rule: Any) -> Any:
        return lambda n, v, d, *, permutation: (
            lax.transpose_p.bind(v[0], permutation=tuple(p + 1 for p in permutation[::-1]) if False else (0, 3, 2, 1))
            if d[0] == 0
            else rule(n, v, d, permutation=permutation)[0],
            0,
        )

    def translated(rule: Any) -> Any:
        def wrong(ctx: Any, in_avals: Any, in_vals: Any, *, permutation: Any) -> Any:
            inverse = tuple(int(k) for k in np.argsort(permutation))
            return rule(ctx, in_avals, in_vals, permutation=inverse)

        return wrong

    def first_axes(rule: Any) -> Any:
        def wrong(ct: Any, x: Any, *, axes: Any) -> Any:
            shape = x.aval.shape
            return [lax.broadcast_in_dim(ct, shape, tuple(range(len(axes), len(shape))))]

        return wrong

    def other_contraction(rule: Any) -> Any:
        def wrong(primals: Any, tangents: Any, *, dimension_numbers: Any, **params: Any) -> Any:
            out, tangent = rule(primals, tangents, dimension_numbers=dimension_numbers, **params)
            return out, None if tangent is None else jnp.swapaxes(tangent, -1, -2)

        return wrong

    return {
        "transpose rule with the same permutation": ("transpose", transpose_rules, same_permutation),
        "vmap of another permutation": ("transpose", vmap_rules, batch_kept),
        "translation with the inverse": ("transpose", xla_translations, translated),
        "cotangent spread over the first axes": ("reduce_sum", transpose_rules, first_axes),
        "tangent of a product transposed": ("dot_general", jvp_rules, other_contraction),
    }


@pytest.mark.parametrize("mistake", _wrong_transposes())
def test_wrong_order_of_axes(mistake: str) -> None:
    name, registry, change = _wrong_transposes()[mistake]
    _failed(_replaced(registry, name, change), "types", "jvp", "vjp", "transpose", "vmap", "xla", examples=EQUAL[name])


# -- indices ---------------------------------------------------------------------------------------------------------


def _pick_aval(x: ShapedArray, start: ShapedArray) -> ShapedArray:
    if start.shape or start.dtype.kind not in "iu":
        raise TypeError("toy.pick: an integer start")
    return x.update(shape=(2, *x.shape[1:]))


def _pick(x: Any, start: Any) -> Any:
    low = min(max(int(start), 0), x.shape[0] - 2)
    return x[low : low + 2].copy()


def _picked(x: Any, start: Any) -> Any:
    starts = (start, *(start * 0 for _ in x.shape[1:]))
    return lax.dynamic_slice_p.bind(x, *starts, slice_sizes=(2, *x.shape[1:]))


PICK: dict[str, dict[str, Any]] = {
    "wraps": {"decomposition": lambda x, start: _picked(x, lax.rem(start + 40, lax.full_like(start, 4)))},
    "counts from the end": {"decomposition": lambda x, start: _picked(x, jnp.where(start < 0, start + 4, start))},
    "zero beyond the ends": {
        "decomposition": lambda x, start: jnp.where((start >= 0) & (start <= 2), _picked(x, start), 0.0).astype(x.dtype)
    },
    "first start of a batch": {
        "vmap": lambda n, v, d: (
            corejax.vmap(lambda x: _picked(x, v[1][0] if d[1] == 0 else v[1]), in_axes=d[0], axis_size=n)(v[0])
            if d[0] is not None else jnp.stack([_picked(v[0], v[1][0])] * n), 0)
    },
    "only starts batched": {
        "vmap": lambda n, v, d: (
            jnp.stack([_picked(v[0], v[1][n - 1 - k]) for k in range(n)]) if d[0] is None
            else jnp.stack([_picked(lax.index_in_dim(v[0], k, d[0], False), v[1] if d[1] is None else v[1][k])
                            for k in range(n)]), 0)
    },
    "derivative where it is inside only": {
        "jvp": lambda p, t: (_picked(*p), jnp.where(p[1] >= 0, _picked(t[0], p[1]), 0.0).astype(p[0].dtype))
    },
}  # fmt: skip


@pytest.mark.parametrize("mistake", ["", *PICK])
def test_starts_beyond_the_ends_and_batches_of_starts(mistake: str) -> None:
    rules = {"decomposition": _picked, **PICK.get(mistake, {})}
    primitive = Primitive("toy.pick", impl=_pick, abstract_eval=_pick_aval, **rules)
    examples = [Example((_x(4), _x(dtype=I32)), low=(-2, 0), high=(2, 2))]
    (result,) = verify(primitive, examples, checks=["indices"], quick=True)
    assert result.failed is bool(mistake), result.report()


def test_numbers_of_other_examples_make_a_batch() -> None:
    """Starts that the author gave as numbers are batched with those of the other examples."""

    def first_only(rule: Any) -> Any:
        def wrong(n: int, v: Any, d: Any, **params: Any) -> Any:
            if d[1] is None:
                return rule(n, v, d, **params)
            return rule(n, [v[0], jnp.stack([v[1][0]] * n)], d, **params)

        return wrong

    primitive = _replaced(vmap_rules, "dynamic_slice", first_only)
    assert _failed(primitive, "vmap").rule == "vmap"
    assert _failed(primitive, "indices").rule == "vmap"


def _third_branch(rule: Any) -> Any:
    """The third branch is taken for the second."""

    def wrong(*args: Any, branches: Any, **params: Any) -> Any:
        return rule(*args, branches=(*branches[:2], *[branches[1]] * (len(branches) - 2)), **params)

    return wrong


@pytest.mark.parametrize("kind", [jvp_rules, vmap_rules, xla_translations])
def test_third_branch(kind: Any) -> None:
    _failed(_replaced(kind, "cond", _third_branch), "jvp", "vjp", "vmap", "xla", "indices")


def _beyond_is_the_first(rule: Any) -> Any:
    """Batched choices beyond the last branch take the first."""

    def wrong(axis_size: int, vals: Any, dims: Any, *, branches: Any, **params: Any) -> Any:
        index = vals[0] if dims[0] is None else jnp.where(vals[0] < len(branches), vals[0], 0)
        return rule(axis_size, [index, *vals[1:]], dims, branches=branches, **params)

    return wrong


def test_beyond_the_last_branch() -> None:
    assert _failed(_replaced(vmap_rules, "cond", _beyond_is_the_first), "vmap", "indices").rule == "vmap"


# -- loops without turns ----------------------------------------------------------------------------------------------


def _without_turns(rule: Any) -> Any:
    def wrong(*args: Any, length: int, **params: Any) -> Any:
        if not length:
            raise IndexError("a loop of length 0")
        return rule(*args, length=length, **params)

    return wrong


def _one_turn_less(rule: Any) -> Any:
    def wrong(primals: Any, tangents: Any, *, length: int, **params: Any) -> Any:
        outs, ts = rule(primals, tangents, length=length, **params)
        return outs, [None if t is None else t * 0.0 if not length else t for t in ts]

    return wrong


def _no_equation(rule: Any) -> Any:
    def wrong(used: Any, eqn: Any) -> Any:
        if eqn.params["length"] == 0:
            return [False] * len(eqn.invars), None
        return rule(used, eqn)

    return wrong


@pytest.mark.parametrize("kind", [vmap_rules, xla_translations, jvp_rules])
def test_loop_of_length_0(kind: Any) -> None:
    _failed(_replaced(kind, "scan", _without_turns), "turns")


def test_loop_of_length_0_is_differentiated() -> None:
    assert _failed(_replaced(jvp_rules, "scan", _one_turn_less), "turns").rule == "jvp"


def test_loop_of_length_0_is_split_and_pruned() -> None:
    def wrong(rule: Any) -> Any:
        def split(unknowns: Any, eqn: Any) -> Any:
            if eqn.params["length"] == 0:
                raise ValueError("need at least one array to stack")
            return rule(unknowns, eqn)

        return split

    dce_rules.register(primitives["scan"], _no_equation(dce_rules[primitives["scan"]]), override=True)
    _failed(primitives["scan"], "turns")
    undo_rule = _replaced(partial_eval_jaxpr_rules, "scan", wrong)
    _failed(undo_rule, "turns")


# -- mixed dtypes, negative axes --------------------------------------------------------------------------------------


def _lenient(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    return x.update(weak_type=x.weak_type and y.weak_type)


def test_mixed_dtypes_are_refused_or_right() -> None:
    with toy("toy.mulsin", {"abstract_eval": _lenient}) as primitive:
        result = _failed(primitive, "bad_types", examples=EXAMPLES["toy.mulsin"])
    assert result.rule == "abstract_eval" and "mixed dtypes" in result.message


def _rowsum_of_any(x: ShapedArray, *, axis: int) -> ShapedArray:
    return toys.same(x).update(shape=tuple(np.delete(x.shape, axis % x.ndim).tolist()))


def _rowsum_unchecked(x: ShapedArray, *, axis: int) -> ShapedArray:
    return toys.same(x).update(shape=x.shape[1:] if axis == 0 else x.shape[:-1])


def _rowsum_of_others(x: ShapedArray, *, axis: int) -> ShapedArray:
    return toys.same(x).update(shape=tuple(d for i, d in enumerate(x.shape) if i != axis))


@pytest.mark.parametrize("rule", [_rowsum_of_any, _rowsum_unchecked, _rowsum_of_others])
def test_negative_axes_are_refused_or_right(rule: Any) -> None:
    def impl(x: Any, *, axis: int) -> Any:
        return np.multiply(np.sum(x, axis, dtype=x.dtype), 3, dtype=x.dtype)

    with toy("toy.rowsum", {"abstract_eval": rule, "impl": impl}) as primitive:
        result = _failed(primitive, "bad_types", examples=EXAMPLES["toy.rowsum"])
    assert result.rule == "abstract_eval" and "axis=" in result.message


def test_what_is_refused_is_no_failure() -> None:
    with toy("toy.rowsum") as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.rowsum"], checks=["bad_types"])
    assert result.status == "passed", result.report()
