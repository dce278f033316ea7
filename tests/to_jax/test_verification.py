"""The check `jax` of `corejax verify` passes right rules and finds wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax_testing
from corejax.extend import (
    Example,
    Primitive,
    ShapedArray,
    find_primitive,
    jvp_rules,
    transpose_rules,
    vmap_rules,
    xla_translations,
)

pytest.importorskip("jax")
pytest.importorskip("corejax_to_jax")

EXAMPLES = [Example([ShapedArray((3,), np.float32)])]

# Kind of the rule -> the registry, and a wrong rule.
WRONG: dict[str, tuple[Any, Any]] = {
    "jvp": (jvp_rules, lambda primals, tangents: (triple_p().bind(*primals), 2 * tangents[0])),
    "vmap": (vmap_rules, lambda size, vals, dims: (triple_p().bind(vals[0] * 2), dims[0])),
    "transpose": (transpose_rules, lambda ct, x: [ct]),
    "xla_translation": (xla_translations, lambda ctx, avals, vals: vals[0]),
}


def triple_p() -> Primitive:
    """A linear primitive with every rule written."""
    p = find_primitive("to_jax_tests.triple")
    if p is None:
        p = Primitive(
            "to_jax_tests.triple", impl=lambda x: x * x.dtype.type(3), abstract_eval=lambda x: x.strip_weak_type()
        )
        jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)))
        transpose_rules.register(p, lambda ct, x: [p.bind(ct)])
        vmap_rules.register(p, lambda size, vals, dims: (p.bind(*vals), dims[0]))
    return p


def verified() -> Any:
    (result,) = corejax_testing.verify(triple_p(), EXAMPLES, checks=["jax"])
    return result


def test_right_rules_pass() -> None:
    result = verified()
    assert result.status == "passed", result.report()


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_rule_is_found_in_jax(kind: str) -> None:
    registry, wrong = WRONG[kind]
    rule = registry.rule_of(triple_p())
    right = rule.fn if rule is not None and rule.derived is None else None
    if right is not None:
        registry.unregister(triple_p())
    registry.register(triple_p(), wrong)
    try:
        result = verified()
    finally:
        registry.unregister(triple_p())
        if right is not None:
            registry.register(triple_p(), right)
    assert result.failed and "jax" in result.message and result.rule == kind, result.report()


@pytest.mark.parametrize(("name", "reason"), [("psum", "inside another function"), ("debug_callback", "effects")])
def test_what_cannot_be_carried_over_is_not_checked(name: str, reason: str) -> None:
    (result,) = corejax_testing.verify(find_primitive(name), checks=["jax"])
    assert result.status == "not applicable" and reason in result.message
