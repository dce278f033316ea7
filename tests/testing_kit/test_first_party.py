"""The kit on the first-party plugins."""

from __future__ import annotations

import pytest

import corejax
import corejax_testing
from corejax.extend import primitives
from corejax_testing.checks import all_checks
from corejax_testing.contributions import examples_of

pytestmark = pytest.mark.sampled
corejax.plugins.load_everything()
OWNERS = ("lax_basic", "control_flow", "xla_backend")
NAMES = sorted(name for name, p in primitives.items() if p.provenance.plugin in OWNERS)
SLICE = ("sin", "sub", "select_n", "reduce_prod", "pad", "dynamic_slice", "dot_general", "convert_element_type")
FAST = [
    name for name in corejax_testing.CHECKS if name not in ("xla", "pairs", "triples", "special", "extremes", "sharded")
]

test_slice_of_lax_basic = corejax_testing.tests_for(*SLICE, checks=FAST, quick=True)
test_pairs = corejax_testing.tests_for(
    "mul", "reduce_max", checks=["pairs", "triples", "xla", "special", "extremes", "sharded"], quick=True
)
LONG = ("pairs", "triples", "cost", "sharded")
HIGHER_ORDER = [name for name in corejax_testing.CHECKS if name not in LONG]
LOOPS_AND_CALLS = (
    "scan",
    "while",
    "cond",
    "xla_call",
    "custom_vjp_call",
)  # tests/control_flow/test_pairs.py has others

test_higher_order = corejax_testing.tests_for("control_flow", "xla_backend", checks=HIGHER_ORDER, quick=True)
test_loops_and_calls = corejax_testing.tests_for(*LOOPS_AND_CALLS, checks=["pairs"], quick=True)
test_one_of_each_sort = corejax_testing.tests_for("scan", "xla_call", "custom_vjp_call", checks=LONG[1:], quick=True)
test_all = pytest.mark.slow(corejax_testing.tests_for("lax_basic", "control_flow", "xla_backend"))


@pytest.mark.parametrize("name", NAMES)
def test_every_primitive_has_examples(name: str) -> None:
    found = examples_of(name)
    assert found
    for example in found:
        assert {*example.skip, *example.fails} <= {*all_checks()}
