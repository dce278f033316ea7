"""Rule registries: provenance, overriding, unregistering, platforms, derived rules, and what a miss says."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import plugins, rules
from corejax.base.provenance import Provenance
from corejax.base.tables import restore, snapshot
from corejax.cli.rule_status import rule_status, rule_statuses
from corejax.core.avals import ShapedArray
from corejax.core.primitive import Primitive, primitives
from corejax.errors import DuplicateRegistrationError, MissingRuleError
from corejax.extend._defjvp import defjvp
from corejax.extend._defvmap import defbroadcasting, defvectorized
from corejax.rules import (
    Derivation,
    RuleRegistry,
    abstract_eval_rules,
    impl_rules,
    jvp_rules,
    transpose_rules,
    vmap_rules,
    xla_translations,
)
from corejax.settings.config import config

_names = (f"rules_test.p{i}" for i in itertools.count())


@pytest.fixture(autouse=True)
def kernel_tables_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test's primitives and rules are gone after it; no plugin is loaded for a miss."""
    monkeypatch.setattr(plugins.manager(), "load_rules", lambda kind, primitive=None: False)
    monkeypatch.setattr(plugins.manager(), "problems", lambda kind: ())
    before = snapshot()
    yield
    restore(before)


def make(**fields: Any) -> Primitive:
    return Primitive(next(_names), **fields)


def same_aval(*avals: ShapedArray) -> ShapedArray:
    return avals[0]


def line_of(function: Any) -> int:
    return function.__code__.co_firstlineno


# -- registering ---------------------------------------------------------------------------------------------------


def test_rule_knows_where_it_was_written() -> None:
    p = make()

    @jvp_rules.register(p)
    def rule(primals, tangents):
        return primals[0], tangents[0]

    found = jvp_rules.rule_of(p)
    assert found is not None
    assert found.fn is rule
    assert (found.provenance.file, found.provenance.line) == (__file__, line_of(rule))
    assert found.provenance.module == __name__
    assert found.derived is None and found.overridden is None


def test_wrapped_and_partial_functions_are_where_the_inner_function_was_written() -> None:
    def rule(x):
        return x

    assert Provenance.of(partial(partial(rule), 1)).line == line_of(rule)
    wrapper = lambda *args: rule(*args)
    wrapper.__wrapped__ = rule
    assert Provenance.of(wrapper).line == line_of(rule)


@pytest.mark.parametrize("borrowed", [np.sin, np.linalg.norm], ids=["ufunc", "function"])
def test_borrowed_function_belongs_to_who_registers_it(borrowed: Any) -> None:
    p = make(impl=borrowed)
    found = impl_rules.rule_of(p)
    assert found is not None
    assert (found.provenance.module, found.provenance.file) == (__name__, __file__)


def test_rule_of_a_helper_is_where_its_author_called_it() -> None:
    p = make()
    derivative = lambda t, out, x: t
    defjvp(p, derivative)
    found = jvp_rules.rule_of(p)
    assert found is not None
    assert (found.provenance.file, found.provenance.line) == (__file__, line_of(derivative))


def test_registering_needs_a_function_and_known_flags() -> None:
    p = make()
    with pytest.raises(TypeError, match=rf"a JVP rule is a function, got 3 for primitive '{p.name}'"):
        jvp_rules.register(p, 3)
    with pytest.raises(
        TypeError, match=r"takes no flag 'symbolic_zero'; there are \['nondifferentiable', 'symbolic_zeros'\]"
    ):
        jvp_rules.register(p, lambda primals, tangents: None, symbolic_zero=True)
    assert p not in jvp_rules


def test_second_rule_is_refused_and_names_both_owners() -> None:
    p = make()
    first = lambda primals, tangents: 1
    second = lambda primals, tangents: 2
    jvp_rules.register(p, first)
    with pytest.raises(DuplicateRegistrationError) as caught:
        jvp_rules.register(p, second)
    message = str(caught.value)
    assert p.name in message and "JVP rule" in message and "override=True" in message
    assert f"test_rules.py:{line_of(first)}" in message and f"test_rules.py:{line_of(second)}" in message
    assert jvp_rules.lookup(p)((), ()) == 1


def test_same_definition_again_is_no_duplicate() -> None:
    p = make()
    for value in (1, 2):
        vmap_rules.register(p, lambda *_, value=value: value)
    assert vmap_rules.lookup(p)() == 2
    assert vmap_rules.rule_of(p).overridden is None


def test_override_is_visible_and_unregistering_it_brings_the_other_back() -> None:
    p = make(vmap=lambda *_: "first")
    vmap_rules.register(p, lambda *_: "second", override=True)
    entry = vmap_rules.rule_of(p)
    assert vmap_rules.lookup(p)() == "second"
    assert entry.overriding and entry.overridden.fn() == "first"
    vmap_rules.unregister(p)
    assert vmap_rules.lookup(p)() == "first"
    vmap_rules.unregister(p)
    assert p not in vmap_rules and vmap_rules.rule_of(p) is None
    with pytest.raises(KeyError, match=rf"primitive '{p.name}' has no vmap rule to unregister"):
        vmap_rules.unregister(p)


def test_override_wins_whichever_comes_first() -> None:
    p = make()
    vmap_rules.register(p, lambda *_: "override", override=True)
    vmap_rules.register(p, lambda *_: "original")
    assert vmap_rules.lookup(p)() == "override"
    assert vmap_rules.rule_of(p).overridden.fn() == "original"
    with pytest.raises(DuplicateRegistrationError):
        vmap_rules.register(p, lambda *_: "a third")
    vmap_rules.unregister(p)
    assert vmap_rules.lookup(p)() == "original"


def test_override_of_an_impl_is_what_runs() -> None:
    p = make(impl=lambda x: x + 1, abstract_eval=same_aval)
    x = np.float32(1)
    assert float(p.bind(x)) == 2
    impl_rules.register(p, lambda x: x + 10, override=True)
    assert float(p.bind(x)) == 11
    impl_rules.register(p, lambda x: x, override=True, device=True)
    assert float(p.bind(x)) == 1
    impl_rules.unregister(p)
    impl_rules.unregister(p)
    assert float(p.bind(x)) == 2


def test_new_abstract_eval_rule_forgets_what_the_old_one_said() -> None:
    p = make(abstract_eval=same_aval)
    aval = ShapedArray((3,), np.dtype("float32"))
    assert p.abstract((aval,), {}) == (aval,)
    abstract_eval_rules.register(p, lambda a: a.update(shape=()), override=True)
    assert p.abstract((aval,), {})[0].shape == ()


# -- platforms -----------------------------------------------------------------------------------------------------


def test_platform_rule_goes_before_the_general_one() -> None:
    p = make()
    xla_translations.register(p, lambda *_: "any")
    xla_translations.register(p, lambda *_: "cuda", platform="cuda")
    assert xla_translations.lookup(p)() == "any"
    assert xla_translations.lookup(p, "cpu")() == "any"
    assert xla_translations.lookup(p, "cuda")() == "cuda"
    assert xla_translations.platforms_of(p) == ("cuda",)
    assert xla_translations.rule_of(p, "cuda").fn() == "cuda"
    with pytest.raises(DuplicateRegistrationError, match="on platform 'cuda'"):
        xla_translations.register(p, lambda *_: "again", platform="cuda")
    xla_translations.unregister(p, "cuda")
    assert xla_translations.lookup(p, "cuda")() == "any"
    assert xla_translations.platforms_of(p) == ()


def test_lazy_platform_rule_is_loaded_although_there_is_a_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    p = make()
    xla_translations.register(p, lambda *_: "any")

    def load(kind: str, primitive: object = None) -> bool:
        if xla_translations.rule_of(p, "cuda") is not None:
            return False
        xla_translations.register(p, lambda *_: "cuda", platform="cuda")
        return True

    monkeypatch.setattr(plugins.manager(), "load_rules", load)
    assert xla_translations.lookup(p, "cuda")() == "cuda"


def test_rule_for_another_platform_only_is_a_miss() -> None:
    p = make()
    xla_translations.register(p, lambda *_: "cuda", platform="cuda")
    with pytest.raises(MissingRuleError, match="has no XLA translation rule for platform 'cpu'"):
        xla_translations.lookup(p, "cpu")
    assert rule_status(p, xla_translations).status == "platform"


# -- misses --------------------------------------------------------------------------------------------------------


def test_miss_says_primitive_owner_kind_line_and_what_to_write() -> None:
    p = make(impl=lambda x: x)
    with pytest.raises(MissingRuleError) as caught:
        corejax.make_jaxpr(p.bind)(np.float32(1))
    line = caught.traceback[0].lineno + 1
    message = str(caught.value)
    assert f"primitive '{p.name}' (from module {__name__}) has no abstract-eval rule." in message
    assert f"{__file__}:{line}" in message
    name = p.name.replace(".", "_")
    assert f"@abstract_eval_rules.register({name}_p)\n    def {name}_abstract_eval(*avals, **params):" in message
    assert caught.value.primitive is p and caught.value.kind == "abstract_eval"
    assert isinstance(caught.value, NotImplementedError)


def test_miss_names_plugins_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins.manager(), "problems", lambda kind: [f"plugin 'acme' failed to load its {kind} rules"])
    with pytest.raises(MissingRuleError, match="Note: plugin 'acme' failed to load its vmap rules"):
        vmap_rules.lookup(make())


def test_template_may_hold_braces() -> None:
    registry = RuleRegistry("rules_test_kind", "test rule", "    table_of_{name} = {'{var}': {}}")
    with pytest.raises(MissingRuleError, match=r"= \{'rules_test_p\d+_p': \{\}\}"):
        registry.lookup(make())


def test_get_gives_the_default_where_lookup_raises() -> None:
    p = make()
    assert vmap_rules.get(p) is None and vmap_rules.get(p, 3) == 3
    with pytest.raises(MissingRuleError):
        vmap_rules[p]


# -- derived rules -------------------------------------------------------------------------------------------------


def double(x):
    """Twice x."""
    return ADD.bind(x, x)


ADD = Primitive("rules_test.add", impl=np.add, abstract_eval=same_aval)


def test_decomposition_alone_gives_every_rule_marked_derived() -> None:
    p = make(decomposition=double)
    assert p.doc == "Twice x."
    found = rule_statuses(p)
    kinds = ("impl", "abstract_eval", "jvp", "vmap", "transpose")
    assert {found[kind].status for kind in kinds} == {"derived"}
    assert {found[kind].derivation for kind in kinds} == {"decomposition"}
    assert p not in impl_rules.table, "asking keeps nothing"
    assert float(p.bind(np.float32(3))) == 6
    rule = impl_rules.rule_of(p)
    assert rule.derived == "decomposition" and rule.provenance == p.provenance
    assert rule_status(p, impl_rules).status == "derived"


def test_written_rule_wins_over_the_derived_one_at_any_time() -> None:
    p = make(decomposition=double)
    assert float(p.bind(np.float32(3))) == 6
    impl_rules.register(p, lambda x: x * 0)
    assert float(p.bind(np.float32(3))) == 0
    assert rule_status(p, impl_rules).status == "own"
    assert impl_rules.rule_of(p).overridden is None
    impl_rules.unregister(p)
    assert float(p.bind(np.float32(3))) == 6


def test_strict_rules_refuse_derived_ones() -> None:
    p = make(decomposition=double)
    with config.override(strict_rules=True):
        assert impl_rules.can_derive(p) is None
        assert rule_status(p, impl_rules).status == "missing"
        with pytest.raises(MissingRuleError, match=r"derived rules are refused: config\.strict_rules"):
            p.bind(np.float32(1))
    assert float(p.bind(np.float32(1))) == 2


def test_third_party_derivations_are_asked_in_order() -> None:
    registry = RuleRegistry("rules_test_derived", "test rule", "    ...")
    registry.derivations.append(Derivation("never", lambda p: None))
    registry.derivations.append(Derivation("always", lambda p: lambda: p.name))
    p = make()
    assert registry.can_derive(p) == "always" and registry.rule_of(p) is None
    assert registry.lookup(p)() == p.name
    assert registry.rule_of(p).derived == "always"


# -- registries ----------------------------------------------------------------------------------------------------


def test_third_party_rule_kind_joins_the_registries() -> None:
    registry = RuleRegistry("rules_test_new", "test rule", "    ...", required=False)
    assert rules.registries["rules_test_new"] is registry
    assert registry.provenance.file == __file__
    p = make()
    assert rule_statuses(p)["rules_test_new"].status == "not_required"
    with pytest.raises(DuplicateRegistrationError, match=r"rule kind 'rules_test_new' exists, from .*test_rules.py:"):
        RuleRegistry("rules_test_new", "another", "    ...")


def test_declared_linear_operand_requires_a_transpose_rule() -> None:
    assert rule_status(make(linear_in=(0,)), transpose_rules).status == "missing"
    assert rule_status(make(), transpose_rules).status == "not_required"


def test_registry_is_a_mapping_of_what_is_there() -> None:
    p = make()
    before = len(vmap_rules)
    vmap_rules[p] = lambda *_: None
    assert p in vmap_rules and p in list(vmap_rules) and len(vmap_rules) == before + 1
    assert repr(vmap_rules) == f"<registry of vmap rules: {before + 1} primitives>"
    assert vmap_rules == vmap_rules != jvp_rules


# -- primitives ----------------------------------------------------------------------------------------------------


def test_primitive_is_frozen() -> None:
    p = make()
    with pytest.raises(
        AttributeError, match=rf"primitive '{p.name}' is frozen: pass 'multiple_results' when it is created"
    ):
        p.multiple_results = True
    with pytest.raises(AttributeError):
        p.anything = 1


def test_primitive_survives_copy_and_pickle_as_itself() -> None:
    p = make()
    assert copy.copy(p) is p and copy.deepcopy([p])[0] is p and pickle.loads(pickle.dumps(p)) is p


@pytest.mark.parametrize("name", ["", None, 3])
def test_primitive_needs_a_name(name: Any) -> None:
    with pytest.raises(TypeError, match="a primitive's name is a non-empty string"):
        Primitive(name)


def test_effects_and_tags_are_not_one_string() -> None:
    with pytest.raises(TypeError, match="collections of strings"):
        make(effects="print")


def test_second_primitive_of_a_name_is_refused() -> None:
    p = make()
    with pytest.raises(DuplicateRegistrationError) as caught:
        Primitive(p.name)
    assert str(caught.value).count("test_rules.py:") == 2
    assert primitives[p.name] is p


def test_unhashable_parameter_is_named() -> None:
    p = make(impl=lambda x, *, axes: x, abstract_eval=lambda x, *, axes: x)
    with pytest.raises(TypeError) as caught:
        p.bind(np.float32(1), axes=[0, 1])
    message = str(caught.value)
    assert f"parameter 'axes' of primitive '{p.name}' has to be static and hashable" in message
    assert "[0, 1] of type list" in message and __file__ in message and "tuples instead of lists" in message


def test_impl_that_breaks_its_promise_is_named() -> None:
    p = make(impl=lambda x: np.zeros(3, np.float32), abstract_eval=same_aval)
    with pytest.raises(TypeError, match=rf"primitive '{p.name}': its impl rule returned float32\[3\]"):
        p.bind(np.float32(1))


def test_rules_by_helpers_are_of_who_calls_the_helper() -> None:
    p, q = Primitive("toy.helped", impl=np.sin), Primitive("toy.broadcasts", impl=np.add)
    defjvp(p, lambda t, x: t)
    defvectorized(p)
    defbroadcasting(q)
    for rule in (jvp_rules.rule_of(p), vmap_rules.rule_of(p), vmap_rules.rule_of(q)):
        assert rule is not None and (rule.provenance.module, rule.provenance.file) == (__name__, __file__)
