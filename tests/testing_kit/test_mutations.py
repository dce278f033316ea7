"""The kit finds mistakes: of every rule kind at least five wrong rules, each of which some check has to catch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import ShapedArray, is_undef_primal
from corejax_testing import verify
from corejax_testing.checks import all_checks
from tests.testing_kit import toys
from tests.testing_kit.toys import EXAMPLES, RIGHT, toy

_kept: dict[Any, Any] = {}
_calls: list[int] = []


def _rowsum(x: Any, axis: int) -> Any:
    return corejax.extend.primitives["toy.rowsum"].bind(x, axis=axis)


def _mulsin(x: Any, y: Any) -> Any:
    return corejax.extend.primitives["toy.mulsin"].bind(x, y)


# -- impl --------------------------------------------------------------------------------------------------------


def _in_place(x: Any, y: Any) -> Any:
    x *= np.sin(y)
    return x


def _own_buffer(x: Any, y: Any) -> Any:
    out = _kept.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))
    return np.multiply(x, np.sin(y), out=out)


def _changing(x: Any, y: Any) -> Any:
    _calls.append(0)
    return np.multiply(x, np.sin(y)) * x.dtype.type(len(_calls))


IMPL: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong sign": ("toy.mulsin", lambda x, y: np.multiply(-x, np.sin(y))),
    "missing factor": ("toy.mulsin", lambda x, y: np.sin(y)),
    "wrong dtype": ("toy.mulsin", lambda x, y: np.multiply(x, np.sin(y)).astype(np.float64)),
    "writes into an operand": ("toy.mulsin", _in_place),
    "writes into its last result": ("toy.mulsin", _own_buffer),
    "different each time": ("toy.mulsin", _changing),
    "wrong axis": ("toy.rowsum", lambda x, *, axis: 3 * np.sum(x, 1 - axis, dtype=x.dtype)),
    "keeps the axis": ("toy.rowsum", lambda x, *, axis: 3 * np.sum(x, axis, dtype=x.dtype, keepdims=True)),
    "dropped term": (
        "toy.rowsum",
        lambda x, *, axis: x.dtype.type(3) * np.delete(x, 0, axis).sum(axis, x.dtype),
    ),
    "cosine": ("toy.mulsin", lambda x, y: np.multiply(x, np.cos(y))),
}


# -- abstract eval -----------------------------------------------------------------------------------------------

ABSTRACT_EVAL: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong dtype": ("toy.mulsin", lambda x, y: toys.same(x, y).update(dtype=np.dtype(np.float64))),
    "always weak": ("toy.mulsin", lambda x, y: toys.same(x, y).update(weak_type=True)),
    "weak if one operand is": (
        "toy.mulsin",
        lambda x, y: ShapedArray(toys.same(x, y).shape, x.dtype, x.weak_type or y.weak_type),
    ),
    "wrong shape": ("toy.mulsin", lambda x, y: toys.same(x, y).update(shape=(1, *x.shape))),
    "wrong axis": ("toy.rowsum", lambda x, *, axis: toys.rowsum_aval(x, axis=1 - axis)),
    "keeps the axis": ("toy.rowsum", lambda x, *, axis: toys.same(x)),
    "scalar": ("toy.rowsum", lambda x, *, axis: toys.same(x).update(shape=())),
    "always float32": ("toy.mulsin", lambda x, y: ShapedArray(toys.same(x, y).shape, np.float32)),
}


# -- jvp ---------------------------------------------------------------------------------------------------------


def _jvp(of_x: Any, of_y: Any, value: Any = None) -> Any:
    """A jvp rule of mulsin from its two terms."""

    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        terms = ([] if dx is None else [of_x(dx, x, y)]) + ([] if dy is None else [of_y(dy, x, y)])
        terms = [t for t in terms if t is not None]
        out = lax.mul(x, lax.sin(y)) if value is None else value(x, y)
        return out, lax.add(*terms) if len(terms) == 2 else terms[0] if terms else None

    return rule


def _first(dx: Any, x: Any, y: Any) -> Any:
    return dx * lax.sin(y)


def _second(dy: Any, x: Any, y: Any) -> Any:
    return x * lax.cos(y) * dy


def _bent(dx: Any, x: Any, y: Any) -> Any:
    return lax.max(_first(dx, x, y), 0.5 * _first(dx, x, y))


def _zeros_as_ones(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return lax.mul(x, lax.sin(y)), _first(x if dx is None else dx, x, y) + _second(y if dy is None else dy, x, y)


def _narrow(primals: Any, tangents: Any) -> Any:
    out, tangent = toys.mulsin_jvp(primals, tangents)
    return out, None if tangent is None else lax.convert_element_type(tangent, np.float16)


JVP: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong sign": ("toy.mulsin", _jvp(_first, lambda dy, x, y: -_second(dy, x, y))),
    "missing factor": ("toy.mulsin", _jvp(_first, lambda dy, x, y: lax.cos(y) * dy)),
    "dropped term": ("toy.mulsin", _jvp(_first, lambda dy, x, y: None)),
    "a tenth of a percent": ("toy.mulsin", _jvp(lambda dx, x, y: _first(dx, x, y) * 1.001, _second)),
    "not linear": ("toy.mulsin", _jvp(lambda dx, x, y: _first(dx, x, y) * dx, _second)),
    "not linear, homogeneous": (
        "toy.mulsin",
        _jvp(_bent, _second),
    ),
    "symbolic zeros": ("toy.mulsin", _zeros_as_ones),
    "wrong dtype": ("toy.mulsin", _narrow),
    "wrong result": ("toy.mulsin", _jvp(_first, _second, lambda x, y: lax.sin(y))),
    "swapped operands": ("toy.mulsin", _jvp(_second, _first)),
    "wrong axis": ("toy.rowsum", lambda p, t, *, axis: (_rowsum(p[0], axis), _rowsum(t[0], 1 - axis))),
    "not batched": ("toy.rowsum", lambda p, t, *, axis: (_rowsum(p[0], axis), t[0])),
    "right once": ("toy.mulsin", _jvp(_first, lambda dy, x, y: lax.stop_gradient(x) * lax.cos(y) * dy)),
}


# -- vmap --------------------------------------------------------------------------------------------------------


def _vmap_of(change: Any) -> Any:
    def rule(axis_size: int, vals: Any, dims: Any) -> Any:
        return change(*toys.mulsin_vmap(axis_size, vals, dims))

    return rule


def _dims_alike(axis_size: int, vals: Any, dims: Any) -> Any:
    dim = next(d for d in dims if d is not None)
    return _mulsin(*(lax.broadcast_in_dim(v, (axis_size, *v.shape), tuple(range(1, v.ndim + 1))) if d is None else v
                     for v, d in zip(vals, dims, strict=True))), dim  # fmt: skip


VMAP: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong sign": ("toy.mulsin", _vmap_of(lambda out, d: (-out, d))),
    "missing factor": ("toy.mulsin", _vmap_of(lambda out, d: (out * 0.5, d))),
    "says not mapped": ("toy.mulsin", _vmap_of(lambda out, d: (out, None))),
    "axes not aligned": ("toy.mulsin", _dims_alike),
    "reversed batch": ("toy.mulsin", _vmap_of(lambda out, d: (lax.rev(out, (d,)), d))),
    "swapped operands": ("toy.mulsin", lambda n, v, d: toys.mulsin_vmap(n, v[::-1], d[::-1])),
    "wrong axis": ("toy.rowsum", lambda n, v, d, *, axis: (_rowsum(v[0], axis), 0)),
    "wrong batching axis out": ("toy.rowsum", lambda n, v, d, *, axis: (_rowsum(v[0], axis + (axis >= d[0])), 0)),
    "batch in front only": ("toy.rowsum", lambda n, v, d, *, axis: (_rowsum(v[0], axis + 1), 0)),
    "wrong dtype": ("toy.mulsin", _vmap_of(lambda out, d: (lax.convert_element_type(out, np.float16), d))),
}


# -- transpose ---------------------------------------------------------------------------------------------------


def _elsewhere(ct: Any, x: Any, y: Any) -> Any:
    return [None, ct * lax.sin(y)] if is_undef_primal(x) else [None, None]


TRANSPOSE: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong sign": ("toy.mulsin", lambda ct, x, y: [-ct * lax.sin(y), None]),
    "missing factor": ("toy.mulsin", lambda ct, x, y: [ct, None]),
    "dropped": ("toy.mulsin", lambda ct, x, y: [None, None]),
    "wrong operand": ("toy.mulsin", _elsewhere),
    "too few": ("toy.mulsin", lambda ct, x, y: [ct * lax.sin(y)]),
    "wrong dtype": ("toy.mulsin", lambda ct, x, y: [lax.convert_element_type(ct * lax.sin(y), np.float16), None]),
    "wrong axis": (
        "toy.rowsum",
        lambda ct, x, *, axis: [3.0 * toys.spread(ct, x.aval.shape[::-1], 1 - axis)],
    ),
    "missing factor of a sum": ("toy.rowsum", lambda ct, x, *, axis: [toys.spread(ct, x.aval.shape, axis)]),
    "not spread": ("toy.rowsum", lambda ct, x, *, axis: [ct * 3.0]),
    "reversed": ("toy.rowsum", lambda ct, x, *, axis: [3.0 * toys.spread(lax.rev(ct, (0,)), x.aval.shape, axis)]),
}


# -- XLA ---------------------------------------------------------------------------------------------------------


def _translated(change: Any) -> Any:
    def rule(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        return change(ctx, *in_vals)

    return rule


def _clamped(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    x, y = in_vals
    if y.aval.dtype.kind == "c":
        return toys.mulsin_xla(ctx, in_avals, in_vals)
    low, high = (ctx.full(y.aval, limit) for limit in (-1e4, 1e4))
    return toys.mulsin_xla(ctx, in_avals, (x, ctx.op("clamp", low, y, high, out=y.aval)))


XLA: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong operation": ("toy.mulsin", _translated(
        lambda c, x, y: c.op("multiply", x, c.op("cosine", y, out=y.aval), out=x.aval))),
    "wrong sign": ("toy.mulsin", _translated(
        lambda c, x, y: c.op("negate", toys.mulsin_xla(c, None, (x, y)), out=x.aval))),
    "missing factor": ("toy.mulsin", _translated(lambda c, x, y: c.op("sine", y, out=y.aval))),
    "swapped operands": ("toy.mulsin", _translated(lambda c, x, y: toys.mulsin_xla(c, None, (y, x)))),
    "dropped term": ("toy.mulsin", _translated(lambda c, x, y: x)),
    "wrong factor": ("toy.rowsum", lambda c, a, v, *, axis: toys.rowsum_xla(c, a, v, axis=axis, factor=3.01)),
    "wrong axis": ("toy.rowsum", lambda c, a, v, *, axis: toys.rowsum_xla(c, a, v, axis=1 - axis)),
    "wrong at infinity": ("toy.mulsin", _clamped),
    "wrong dtype": ("toy.mulsin", _translated(
        lambda c, x, y: c.convert(toys.mulsin_xla(c, None, (x, y)), np.dtype(np.float16)))),
}  # fmt: skip


# -- partial evaluation ------------------------------------------------------------------------------------------


def _tail(change: Any) -> Any:
    """A partial-eval rule of `both` that goes wrong where x is known."""

    def rule(trace: Any, args: Any) -> Any:
        outs = toys.both_partial_eval(trace, args)
        return outs if trace.is_unknown(args[0]) else change(trace, args, outs)

    return rule


PARTIAL_EVAL: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong sign": ("toy.both", _tail(lambda trace, args, outs: [-outs[0], outs[1]])),
    "missing factor": ("toy.both", _tail(lambda trace, args, outs: [args[0], outs[1]])),
    "swapped results": ("toy.both", _tail(lambda trace, args, outs: outs[::-1])),
    "wrong residual": ("toy.both", _tail(
        lambda trace, args, outs: [outs[0], trace.record(lax.mul_p, [outs[0], args[1]], {})[0]])),
    "dropped term": ("toy.both", _tail(lambda trace, args, outs: [outs[0], args[1]])),
    "one result": ("toy.both", _tail(lambda trace, args, outs: outs[:1])),
    "wrong dtype": ("toy.both", _tail(
        lambda trace, args, outs: [lax.convert_element_type(outs[0], np.float16), outs[1]])),
}  # fmt: skip


def _split(change: Any) -> Any:
    """A partial-eval rule for equations that goes wrong where x is known."""

    def rule(unknowns: Any, eqn: Any) -> Any:
        right = toys.both_split(unknowns, eqn)
        return right if unknowns[0] else change(eqn, *right)

    return rule


def _equation(eqn: Any, primitive: Any, invars: Any, outvars: Any) -> Any:
    return type(eqn)(primitive, invars, outvars, {}, eqn.source_info)


PARTIAL_EVAL_JAXPR: dict[str, tuple[str, Callable[..., Any]]] = {
    "wrong residual": ("toy.both", _split(lambda eqn, known, later, unks, res: (
        known, _equation(eqn, lax.mul_p, [eqn.outvars[0], eqn.invars[1]], [eqn.outvars[1]]), unks, [eqn.outvars[0]]))),
    "missing factor": ("toy.both", _split(lambda eqn, known, later, unks, res: (
        known, _equation(eqn, lax.neg_p, [eqn.invars[1]], [eqn.outvars[1]]), unks, []))),
    "wrong sign": ("toy.both", _split(lambda eqn, known, later, unks, res: (
        _equation(eqn, lax.neg_p, [eqn.invars[0]], [eqn.outvars[0]]), later, unks, res))),
    "all called known": ("toy.both", _split(lambda eqn, known, later, unks, res: (known, later, [False, False], res))),
    "swapped flags": ("toy.both", _split(lambda eqn, known, later, unks, res: (known, later, [True, False], res))),
    "never computed": ("toy.both", _split(lambda eqn, known, later, unks, res: (known, None, unks, res))),
    "dropped term": ("toy.both", _split(lambda eqn, known, later, unks, res: (
        known, _equation(eqn, lax.add_p, list(eqn.invars), [eqn.outvars[1]]), unks, res))),
}  # fmt: skip

KINDS = {
    "impl": IMPL,
    "abstract_eval": ABSTRACT_EVAL,
    "jvp": JVP,
    "vmap": VMAP,
    "transpose": TRANSPOSE,
    "xla_translation": XLA,
    "partial_eval": PARTIAL_EVAL,
    "partial_eval_jaxpr": PARTIAL_EVAL_JAXPR,
}
CASES = [(kind, mistake) for kind, mistakes in KINDS.items() for mistake in mistakes]


def test_there_are_five_wrong_rules_of_every_kind() -> None:
    assert {kind for rules in RIGHT.values() for kind in rules} == set(KINDS)
    assert min(Counter(kind for kind, _ in CASES).values()) >= 5


def _of(kind: str) -> list[str]:
    """All checks, those of a kind of rule first: one of them finds most mistakes."""
    checks = all_checks()
    return sorted(checks, key=lambda name: checks[name].rule != kind)


@pytest.mark.parametrize(("kind", "mistake"), CASES)
def test_wrong_rule_is_caught(kind: str, mistake: str) -> None:
    name, rule = KINDS[kind][mistake]
    with toy(name, {kind: rule}) as primitive:
        results = verify(primitive, EXAMPLES[name], checks=_of(kind), quick=True)
        caught = next((result for result in results if result.failed), None)
    assert caught is not None
    assert "operand 0" in caught.report()


@pytest.mark.parametrize("name", ["toy.mulsin"])
def test_wrong_declaration_is_caught(name: str) -> None:
    with toy(name, linear_in=(0, 1)) as primitive:
        results = verify(primitive, EXAMPLES[name], checks=_of("transpose")[:8], quick=True)
        caught = [result.check for result in results if result.failed]
    assert "transpose" in caught


def test_report_names_rule_and_smallest_operands() -> None:
    with toy("toy.mulsin", {"jvp": JVP["wrong sign"][1]}) as primitive:
        (result,) = verify(primitive, EXAMPLES["toy.mulsin"], checks=["jvp"])
    assert result.rule == "jvp"
    assert "test_mutations.py" in result.where
    assert "look at: the jvp rule" in result.report()
    assert "operand 1: float32[1] [1.]" in result.report()
