"""Mistakes that show at other sizes than the author's examples have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, deflinear, primitives, vmap_rules, xla_translations
from corejax_testing import verify
from corejax_testing.variations import at_length, in_other_sizes
from tests.testing_kit.toys import same

F3 = ShapedArray((3,), np.dtype(np.float32))


pytestmark = pytest.mark.usefixtures("nothing_is_left")


def reverse(transpose: Any = None, **rules: Any) -> Primitive:
    given = {"impl": lambda x: np.flip(x, -1), "abstract_eval": same, "linear_in": (0,), **rules}
    p = Primitive("toy.reverse", **given)
    deflinear(p, transpose or (lambda ct, x: [p.bind(ct)]))
    return p


def failing(p: Primitive, example: Example, *checks: str) -> list[tuple[str, str]]:
    return [(r.check, r.call) for r in verify(p, [example], checks=checks, quick=True) if r.failed]


def wrong_where_even(ct: Any, x: Any) -> Any:
    out = ct[::-1]
    return [jnp.roll(out, 1) if x.aval.shape[-1] % 2 == 0 else out]


def twice_where_alone(ct: Any, x: Any) -> Any:
    return [ct[::-1] * (2 if x.aval.shape[-1] == 1 else 1)]


def empty_is_one(x: Any) -> Any:
    return np.flip(x, -1) if x.size else np.ones((1,), x.dtype)


def no_batch_of_even(n: int, vals: Any, dims: Any) -> Any:
    x = vals[0] if dims[0] == 0 else jnp.moveaxis(vals[0], dims[0], 0)
    return (x[..., ::-1] if x.shape[-1] % 2 else x), 0


def translation_of_odd(ctx: Any, avals: Any, vals: Any) -> Any:
    odd = avals[0].shape[-1] % 2
    return ctx.op("reverse", vals[0], out=avals[0], attrs="dimensions = array<i64: 0>") if odd else vals[0]


def test_right_rules_pass() -> None:
    p = reverse()
    assert failing(p, Example([F3]), "types", "transpose", "vjp", "jvp", "linearity", "vmap") == []


def test_wrong_at_other_lengths() -> None:
    assert [name for name, _ in failing(reverse(wrong_where_even), Example([F3]), "transpose")] == ["transpose"]
    assert [name for name, _ in failing(reverse(twice_where_alone), Example([F3]), "transpose")] == ["transpose"]
    assert [name for name, _ in failing(reverse(impl=empty_is_one), Example([F3]), "types")] == ["types"]


def test_wrong_batch_and_translation_at_other_lengths() -> None:
    p = reverse()
    vmap_rules.register(p, no_batch_of_even)
    xla_translations.register(p, translation_of_odd)
    assert [name for name, _ in failing(p, Example([F3]), "vmap", "xla")] == ["vmap", "xla"]


def counted_in_bytes(x: Any) -> Any:
    return x[np.arange(x.shape[-1]).astype(np.uint8)][::-1].copy()


def blocks_of_batch(n: int, vals: Any, dims: Any) -> Any:
    x = vals[0] if dims[0] == 0 else jnp.moveaxis(vals[0], dims[0], 0)
    return jnp.concatenate([x[:, :128][:, ::-1], x[:, 128:]], 1), 0


def translation_of_few(ctx: Any, avals: Any, vals: Any) -> Any:
    return translation_of_odd(ctx, [ShapedArray((1,), np.float32)], vals) if avals[0].size < 256 else vals[0]


def test_wrong_beyond_what_a_byte_counts() -> None:
    example = Example([F3], reference=lambda x: x[::-1])
    assert [name for name, _ in failing(reverse(impl=counted_in_bytes), example, "values")] == ["values"]
    p = reverse()
    vmap_rules.register(p, blocks_of_batch)
    xla_translations.register(p, translation_of_few)
    assert [name for name, _ in failing(p, example, "vmap", "xla")] == ["vmap", "xla"]
    square = Example([ShapedArray((100, 3), np.dtype(np.float32))] * 2, {"dimension": 0})
    assert [[x.shape for x in e.operands] for e in at_length(primitives["concatenate"], square)] == [[(1300, 3)] * 2]
    assert list(at_length(primitives["concatenate"], square, most=1000)) == []


def test_lengths_that_belong_together_stay_together() -> None:
    m, v = ShapedArray((2, 3), np.dtype(np.float32)), ShapedArray((3,), np.dtype(np.float32))
    p = primitives["dot_general"]
    example = Example([m, v], {"dimension_numbers": (((1,), (0,)), ((), ())), "preferred_element_type": m.dtype})
    shapes = [[x.shape for x in other.operands] for other in in_other_sizes(p, example)]
    assert shapes == [[(3, 4), (4,)], [(3, 3), (3,)], [(1, 1), (1,)], [(2, 0), (0,)]]
    fixed = Example([F3], {"shape": (3,), "broadcast_dimensions": (0,)})
    assert [e.operands[0].shape for e in in_other_sizes(primitives["broadcast_in_dim"], fixed)] == [(1,)]
    assert list(in_other_sizes(primitives["sin"], Example([F3]))) == []  # elementwise: hypothesis does that
