"""The best derivation that applies makes a missing rule, whatever else the author gives."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.base.tables import restore, snapshot
from corejax.cli.rule_status import rule_statuses
from corejax.extend import Derivation, Primitive, RuleRegistry, registries
from corejax.extend.messages import DerivedRuleWarning

corejax.plugins.load_everything()

GIVEN = {
    "impl": np.square,
    "abstract_eval": lambda x: x,
    "jvp": lambda primals, tangents: (lax.square(primals[0]), tangents[0] * primals[0] * 2),
    "vmap": lambda axis_size, vals, dims: (lax.square(vals[0]), dims[0]),
    "transpose": lambda ct, x: [ct],
    "xla_translation": lambda ctx, in_avals, in_vals: ctx.op("multiply", *in_vals, *in_vals, out=in_avals[0]),
}

# Rule kind -> (derivation, what the author has to give for it), best first.
DERIVED = {
    "impl": [("decomposition", {"decomposition"}), ("compilation", {"xla_translation", "abstract_eval"})],
    "abstract_eval": [("decomposition", {"decomposition"})],
    "jvp": [("decomposition", {"decomposition"})],
    "vmap": [
        ("batch of the written rules", {"decomposition", "jvp"}),
        ("batch of the written rules", {"decomposition", "transpose"}),
        ("decomposition", {"decomposition"}),
        ("loop", {"impl", "abstract_eval"}),
        ("loop", {"xla_translation", "abstract_eval"}),
    ],
    "transpose": [("decomposition", {"decomposition"})],
    "partial_eval": [],
    "partial_eval_jaxpr": [],
    "xla_translation": [("decomposition", {"decomposition"}), ("host callback", {"impl", "abstract_eval"})],
    "checkify": [("decomposition", {"decomposition"}), ("NaN in results", set())],
    "discharge": [],
    "jet": [("decomposition", {"decomposition"}), ("nested JVP", {"jvp"})],
}
COMBINATIONS = [
    frozenset(names) for n in range(len(GIVEN) + 2) for names in itertools.combinations(["decomposition", *GIVEN], n)
]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = snapshot()
    yield
    restore(before)


def _primitive(given: frozenset[str]) -> Primitive:
    primitive = Primitive("order.square", decomposition=lax.square if "decomposition" in given else None)
    for kind in sorted(given - {"decomposition"}):
        registries[kind].register(primitive, GIVEN[kind])
    return primitive


def test_every_rule_kind_has_its_order() -> None:
    assert {kind for kind, r in registries.items() if r.provenance.plugin or r.provenance.package == "corejax"} == set(
        DERIVED
    )
    for kind, order in DERIVED.items():
        names = [derivation.name for derivation in registries[kind].derivations]
        wanted = list(dict.fromkeys(name for name, _ in order))
        assert [name for name in names if name in wanted] == wanted, kind


def test_the_kernel_lists_its_own_derivations() -> None:
    """Manifests are valid only if they know all of them, which is decided before the kernel registers any."""
    for kind, registry in registries.items():
        if registry.provenance.package == "corejax":
            own = [d.name for d in registry.derivations if d.provenance.package == "corejax"]
            assert list(registry.derived_by) == own, kind


@pytest.mark.parametrize("kind", DERIVED)
def test_best_derivation_for_everything_an_author_may_give(kind: str) -> None:
    for given in COMBINATIONS:
        primitive = _primitive(given)
        found = rule_statuses(primitive)[kind]
        if kind in given:
            assert (found.status, found.derivation) == ("own", None), given
        else:
            wanted = next((name for name, needs in DERIVED[kind] if needs <= given), None)
            if kind == "jet" and given >= {"decomposition", "jvp"}:
                wanted = "nested JVP"  # which keeps the JVP rule
            assert found.derivation == wanted, given
        del corejax.extend.primitives[primitive.name]


@pytest.mark.parametrize("more", [set(), {"impl"}, {"impl", "abstract_eval"}, {"impl", "abstract_eval", "jvp"}])
def test_what_is_given_besides_a_decomposition_makes_nothing_slow(more: set[str]) -> None:
    primitive = _primitive(frozenset({"decomposition", *more}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DerivedRuleWarning)
        fun = corejax.jit(corejax.vmap(corejax.grad(primitive.bind)))
        np.testing.assert_allclose(fun(np.float32([1, 2, 3])), [2, 4, 6])
        text = corejax.jit(primitive.bind).lower(np.float32(3)).as_text()
    assert "custom_call" not in text and "multiply" in text


def test_a_host_callback_that_is_meant_stays_one() -> None:
    primitive = _primitive(frozenset({"decomposition", "impl", "abstract_eval"}))
    registries["xla_translation"].register(primitive, by="host callback")
    assert "callback" in corejax.jit(primitive.bind).lower(np.float32(3)).as_text()


@pytest.mark.parametrize("kind", ["vmap", "xla_translation"])
def test_warning_of_a_slow_rule_names_the_better_way(kind: str) -> None:
    primitive = _primitive(frozenset({"impl", "abstract_eval"}))
    wrapped = {"vmap": corejax.vmap, "xla_translation": corejax.jit}[kind]
    with pytest.warns(DerivedRuleWarning, match=r"Or give the primitive .*a decomposition \(by='decomposition'\)"):
        wrapped(primitive.bind)(np.float32([1, 2]))


def test_order_does_not_depend_on_the_order_of_registration() -> None:
    def never(name: str, slow: str = "") -> Derivation:
        return Derivation(name, lambda p: lambda *args: name, slow=slow)

    every = [never("last", "it waits"), never("other"), never("second"), never("slow", "it waits"), never("first")]
    for k, order in enumerate(itertools.permutations(every)):
        registry = RuleRegistry(f"order{k}", "rule", "", required=False, derived_by=("first", "second", "last"))
        for derivation in order:
            registry.derivations.append(derivation)
        names = [derivation.name for derivation in registry.derivations]
        assert names == ["first", "second", "other", "last", "slow"]


def test_a_better_derivation_that_comes_later_replaces_what_was_derived() -> None:
    primitive = _primitive(frozenset({"impl", "abstract_eval"}))
    registry = registries["vmap"]
    registry.find(primitive)
    assert registry.rule_of(primitive).derived == "loop"
    better = Derivation("better", lambda p: GIVEN["vmap"] if p is primitive else None)
    registry.derivations.append(better)
    try:
        np.testing.assert_allclose(corejax.vmap(primitive.bind)(np.float32([1, 2])), [1, 4])
        assert registry.rule_of(primitive).derived == "better"
    finally:
        registry.derivations.remove(better)


def test_show_says_the_order(capsys: pytest.CaptureFixture[str]) -> None:
    show = pytest.importorskip("corejax_explain.show").show
    _primitive(frozenset({"decomposition", "impl", "abstract_eval"}))
    show(["order.square"], standalone_mode=False)
    rows = {line.split()[0]: " ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert rows["xla_translation"] == "xla_translation derived by decomposition (order: decomposition, host callback)"
    assert rows["vmap"] == "vmap derived by decomposition (order: batch of the written rules, decomposition, loop)"
