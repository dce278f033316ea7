"""A whole transformation from a plugin: its rule kind, its registry, its interpreter."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import extend, plugins
from corejax.cli.rule_status import rule_statuses
from corejax.core.primitive import Primitive, primitives
from corejax.errors import DuplicateRegistrationError, MissingRuleError, PluginError
from corejax.extend import find_primitive, flat_decomposition, memoised, stage_closed
from corejax.extend.plugins import isolated_plugins
from corejax.extend.transforms import trace_stack
from corejax.plugins._plugin_manager import PluginManager
from corejax.rules import registries
from corejax.settings.config import config
from corejax_explain._explain import explain
from tests.kernel.plugin_sites import Site, contents

PLUGIN = """
@hookimpl
def corejax_declare_rule_kinds():
    return {"depth": "depth_plugin.interpreter:depth_rules"}

@hookimpl
def corejax_export_names():
    return {"depth": "depth_plugin.interpreter:depth"}

@hookimpl
def corejax_register_rules(kind):
    if kind == "depth":
        import depth_plugin.rules
"""

# How many operations lie between a function's arguments and its result: a value is boxed with its depth.
INTERPRETER = """
import functools
from corejax.extend import (
    DebugInfo, Derivation, FlatFunction, RuleRegistry, Trace, Tracer, flat_decomposition, get_aval, new_main,
    set_current_trace, current_trace, tree,
)

depth_rules = RuleRegistry(
    "depth", "depth rule",
    "    @depth_rules.register({var})\\n    def {name}_depth(*depths, **params):\\n        return depth",
    required=False, flags=("free",),
)
depth_rules.adapt.provide(lambda primitive, rule, flags: (lambda *d, **p: max(d)) if flags.get("free") else rule)


class DepthTracer(Tracer):
    __slots__ = ("depth", "val")

    def __init__(self, trace, val, depth):
        self._trace, self.val, self.depth = trace, val, depth

    @property
    def aval(self):
        return get_aval(self.val)


tree.mark_leaf_types(DepthTracer)


class DepthTrace(Trace):
    __slots__ = ()
    interpreter = "depth"

    def process_primitive(self, primitive, args, params):
        mine = [type(x) is DepthTracer and x._trace is self for x in args]
        if not any(mine):
            return self.parent.process_primitive(primitive, args, params)
        rule = depth_rules.table.get(primitive) or depth_rules.lookup(primitive)
        vals = [x.val if m else x for x, m in zip(args, mine)]
        with set_current_trace(self.parent):
            deep = rule(*(x.depth if m else 0 for x, m in zip(args, mine)), **params)
            outs = self.parent.process_primitive(primitive, vals, params)
        return [DepthTracer(self, x, deep) for x in outs]


def depth_flat(fun, vals, depths, debug=None):
    trace = DepthTrace(current_trace(), debug)
    with new_main(trace):
        outs = fun(*(DepthTracer(trace, x, d) for x, d in zip(vals, depths)))
    return max((x.depth for x in outs if type(x) is DepthTracer and x._trace is trace), default=0)


def depth(fun):
    def run(*args):
        leaves, in_tree = tree.tree_flatten((args, {}))
        flat = FlatFunction(fun, in_tree, with_kwargs=True)
        return depth_flat(flat, leaves, [0] * len(leaves), DebugInfo(fun, "depth", in_tree))
    return run


def from_decomposition(primitive):
    body = flat_decomposition(primitive)
    if body is None:
        return None
    def rule(*depths, **params):
        return depth_flat(functools.partial(body, **params), [1.0] * len(depths), depths)
    return rule


depth_rules.derivations.append(Derivation("decomposition", from_decomposition, needs="a decomposition"))
"""

OPERATIONS = """
import numpy as np

@hookimpl
def corejax_register_primitives():
    global twice_p, shift_p, plain_p, body_p
    same = lambda x, **params: x
    twice_p = extend.Primitive("ops.twice", impl=lambda x: x * 2, abstract_eval=same)
    shift_p = extend.Primitive("ops.shift", impl=lambda x, *, by: x + by, abstract_eval=same)
    plain_p = extend.Primitive("ops.plain", impl=lambda x: x, abstract_eval=same)
    body_p = extend.Primitive("ops.body", decomposition=lambda x: twice_p.bind(shift_p.bind(twice_p.bind(x), by=3)))
"""

RULES = """
from corejax.extend import find_primitive, registries

registries["depth"].register(find_primitive("ops.twice"), lambda d: d + 1)
registries["depth"].register(find_primitive("ops.shift"), lambda d, *, by: d + by)
"""


@pytest.fixture
def depth_site(site: Site) -> Site:
    """The transformation, and a plugin with primitives that it has rules for."""
    site.add_package("depth", plugin=PLUGIN, interpreter=INTERPRETER, rules=RULES)
    site.add("ops", OPERATIONS)
    return site


def bind(name: str, *args: Any, **params: Any) -> Any:
    primitive = find_primitive(name)
    assert primitive is not None
    return primitive.bind(*args, **params)


def tables() -> Any:
    return contents()


# -- a plugin's rule kind beside the kernel's ----------------------------------------------------------------------


def test_it_is_imported_when_somebody_asks_for_all_rule_kinds(depth_site: Site, fresh: PluginManager) -> None:
    fresh.load()
    assert "depth" not in registries and "depth_plugin.interpreter" not in sys.modules
    assert fresh.rule_kinds["depth"][0] == "depth_plugin.interpreter:depth_rules"
    assert fresh.load_rule_kinds() is True
    assert list(registries)[-1] == "depth" and "depth_plugin.rules" not in sys.modules
    assert fresh.load_rule_kinds() is False
    assert str(registries["depth"].provenance).startswith("plugin depth")


def test_all_rules_of_all_kinds_are_loaded_for_the_command(depth_site: Site, fresh: PluginManager) -> None:
    plugins.load_everything()
    found = {name: rule_statuses(primitives[name])["depth"] for name in ("ops.twice", "ops.plain", "ops.body")}
    assert [c.status for c in found.values()] == ["own", "not_required", "derived"]
    rule = found["ops.twice"].rule
    assert rule is not None and rule.provenance.plugin == "depth" and rule.provenance.module == "depth_plugin.rules"
    assert found["ops.body"].derivation == "decomposition"


def test_rules_are_loaded_when_the_first_one_is_missing(depth_site: Site, fresh: PluginManager) -> None:
    depth = corejax.depth
    assert "depth_plugin.rules" not in sys.modules
    assert depth(lambda x: bind("ops.twice", bind("ops.twice", x)))(1.0) == 2
    assert "depth_plugin.rules" in sys.modules
    assert depth(lambda x: bind("ops.shift", x, by=5))(1.0) == 5
    assert depth(lambda x: 3.0)(1.0) == 0
    assert len(trace_stack()) == 1


def test_another_plugin_gives_rules_of_the_kind_for_its_own_primitives(depth_site: Site, fresh: PluginManager) -> None:
    depth_site.add(
        "more",
        """
        @hookimpl
        def corejax_register_primitives():
            global more_p
            more_p = extend.Primitive("more", impl=lambda x: x, abstract_eval=lambda x: x)

        @hookimpl
        def corejax_register_rules(kind):
            if kind == "depth":
                extend.registries[kind].register(extend.find_primitive("more"), lambda d: None, free=True)
        """,
    )
    assert corejax.depth(lambda x: bind("more", bind("ops.twice", x)))(1.0) == 1
    rule = registries["depth"].rule_of(primitives["more"])
    assert rule is not None and rule.provenance.plugin == "more" and dict(rule.flags) == {"free": True}


def test_a_rule_is_derived_and_can_be_refused(depth_site: Site, fresh: PluginManager) -> None:
    assert corejax.depth(lambda x: bind("ops.body", x))(1.0) == 5
    rule = registries["depth"].rule_of(primitives["ops.body"])
    assert rule is not None and rule.derived == "decomposition"
    with config.override(strict_rules=True):
        with pytest.raises(MissingRuleError, match=r"has no depth rule [(]derived rules are refused"):
            corejax.depth(lambda x: bind("ops.body", x))(1.0)


def test_a_missing_rule_is_told_as_those_of_the_kernel_are(depth_site: Site, fresh: PluginManager) -> None:
    depth_site.add(
        "sick",
        """
        @hookimpl
        def corejax_register_rules(kind):
            raise ZeroDivisionError("no rules today")
        """,
    )
    with pytest.raises(MissingRuleError) as caught:
        corejax.depth(lambda x: bind("ops.plain", x))(1.0)
    text = str(caught.value)
    assert "primitive 'ops.plain' (from plugin ops 1.0) has no depth rule" in text
    assert "It was needed at" in text and "test_rule_kinds.py" in text
    assert "failed to load its depth rules: ZeroDivisionError: no rules today" in text
    assert "@depth_rules.register(ops_plain_p)\n    def ops_plain_depth(*depths, **params):" in text
    assert "something from which the rule can be derived: a decomposition" in text
    assert caught.value.kind == "depth" and len(trace_stack()) == 1


def test_what_a_derived_rule_raises_names_who_derives(depth_site: Site, fresh: PluginManager) -> None:
    def derived(primitive: Any) -> Any:
        def rule(*depths: Any, **params: Any) -> Any:
            raise ZeroDivisionError("no depth today")

        return rule

    corejax.depth(lambda x: bind("ops.twice", x))(1.0)  # loads the registry
    depth_rules = extend.registries["depth"]
    derivation = extend.Derivation("always", derived)
    depth_rules.derivations.append(derivation)
    try:
        with pytest.raises(ZeroDivisionError) as caught:
            corejax.depth(lambda x: bind("ops.plain", x))(1.0)
    finally:
        depth_rules.derivations.remove(derivation)
    [note] = caught.value.__notes__
    assert note.startswith("This came out of the depth rule that is derived (always) of primitive 'ops.plain', from ")
    assert note.count("test_rule_kinds.py") == 2 and len(trace_stack()) == 1


def test_explain_watches_the_interpreter_and_the_rules(depth_site: Site, fresh: PluginManager) -> None:
    explained = explain(lambda x: corejax.depth(lambda x: bind("ops.body", x))(x))(1.0)
    body, twice = explained.primitive("ops.body"), explained.primitive("ops.twice")
    derived, written = body.rule("depth"), twice.rule("depth")
    assert derived is not None and derived.derived == "decomposition"
    assert written is not None and written.plugin == "depth" and written.runs == 2


def test_explain_calls_an_interpreter_by_its_name() -> None:
    class EchoTrace(extend.Trace):
        __slots__ = ()
        interpreter = "echo"

        def process_primitive(self, primitive: Any, args: Any, params: Any) -> list[Any]:
            return list(args)

    class NamelessTrace(EchoTrace):
        __slots__ = ()
        interpreter = ""

    def under(trace: Any, x: Any) -> Any:
        with extend.new_main(trace):
            return primitive.bind(x)

    with isolated_plugins():
        primitive = Primitive("echoed", impl=lambda x: x, abstract_eval=lambda x: x)
        for kind, name in ((EchoTrace, "echo"), (NamelessTrace, "NamelessTrace")):
            explained = explain(lambda kind=kind: under(kind(extend.bottom_trace()), 1.0))()
            assert explained.primitive("echoed").interpreters == {name: 1}


def test_it_interleaves_with_the_kernel_s_transformations(depth_site: Site, fresh: PluginManager) -> None:
    def fun(x: Any) -> Any:
        return bind("ops.twice", x)

    depths: list[int] = []
    fresh.load_primitives()
    extend.defvectorized(primitives["ops.twice"])
    batched = corejax.vmap(lambda x: depths.append(corejax.depth(fun)(x)) or fun(x))(np.arange(3.0))
    assert depths == [1] and batched.shape == (3,)
    assert corejax.depth(corejax.vmap(fun))(np.arange(3.0)) == 1
    inner: list[int] = []
    assert corejax.depth(lambda x: inner.append(corejax.depth(lambda y: fun(x))(1.0)) or fun(x))(1.0) == 1
    assert inner == [0], "to the inner one, a value of the outer one is a constant"


COMMAND = """
import sys
from corejax.cli import main
main(sys.argv[1:])
"""


def test_the_command_has_a_column_and_a_row(depth_site: Site) -> None:
    listed = depth_site.run(COMMAND, "list-primitives")
    assert listed.stdout.splitlines()[0].split()[-1] == "depth"
    found = json.loads(depth_site.run(COMMAND, "list-primitives", "--json").stdout)
    rules = {row["name"]: row["rules"]["depth"] for row in found["primitives"]}
    assert rules == {
        "ops.twice": "own", "ops.shift": "own", "ops.plain": "not_required", "ops.body": "derived",
    }  # fmt: skip
    missing = depth_site.run(COMMAND, "list-primitives", "--missing", "depth", "--json")
    assert missing.returncode == 1
    assert [row["name"] for row in json.loads(missing.stdout)["primitives"]] == ["ops.plain"]
    pytest.importorskip("corejax_explain")
    shown = depth_site.run("import sys\nfrom corejax_explain.show import show\nshow(sys.argv[1:])", "ops.twice").stdout
    [row] = [line for line in shown.splitlines() if line.split()[:1] == ["depth"]]
    assert "own" in row and "plugin depth 1.0" in row and "rules.py:" in row


# -- faults --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("raise ImportError('no libdepth')", ImportError, "no libdepth"),
        ("depth_rules = {}", PluginError, "must be a RuleRegistry; it is {}"),
        ("other = 1", PluginError, "must be a RuleRegistry; there is nothing of that name"),
        (
            "from corejax.extend import RuleRegistry\ndepth_rules = RuleRegistry('height', 'height rule', '')",
            PluginError,
            "the registry of kind 'height'",
        ),
        (
            "from corejax.extend import vmap_rules\ndepth_rules = vmap_rules",
            PluginError,
            "the registry of kind 'vmap'",
        ),
    ],
)
def test_a_registry_that_cannot_be_had(
    source: str, error: type[Exception], text: str, depth_site: Site, fresh: PluginManager
) -> None:
    (depth_site.path / "depth_plugin" / "interpreter.py").write_text(source)
    before = list(registries)
    plugins.load_everything()
    record = fresh.records["depth"]
    assert record.status == "loaded", "what else it contributes stays"
    assert type(record.late_faults["depth rules"]) is error and text in str(record.late_faults["depth rules"])
    assert list(registries) == before
    [problem] = fresh.problems("depth")
    assert problem.startswith("plugin 'depth' (corejax-depth 1.0) failed to load its depth rules: ")
    assert find_primitive("ops.twice") is not None


def test_rules_of_a_module_that_fails_half_way_are_taken_back(depth_site: Site, fresh: PluginManager) -> None:
    (depth_site.path / "depth_plugin" / "rules.py").write_text(
        RULES + "there = registries['depth'].derivations\nthere.remove(there[0])\nraise ZeroDivisionError('half-way')\n"
    )
    with pytest.raises(MissingRuleError, match="failed to load its depth rules: ZeroDivisionError: half-way"):
        corejax.depth(lambda x: bind("ops.twice", x))(1.0)
    registry = registries["depth"]
    assert not registry.table and [d.name for d in registry.derivations] == ["decomposition"]
    assert fresh.records["depth"].status == "loaded" and not corejax.plugins.errors()


def test_a_registry_whose_module_fails_half_way_is_taken_back(depth_site: Site, fresh: PluginManager) -> None:
    path = depth_site.path / "depth_plugin" / "interpreter.py"
    path.write_text(path.read_text() + "\nraise ZeroDivisionError('half-way')\n")
    plugins.load_everything()
    assert "depth" not in registries
    assert isinstance(fresh.records["depth"].late_faults["depth rules"], ZeroDivisionError)
    assert find_primitive("ops.twice") is not None
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("depth_plugin.interpreter")


@pytest.mark.parametrize(
    ("declared", "error", "text"),
    [
        ("['depth']", PluginError, 'must return a mapping such as {"interval": '),
        ("{'depth': 'depth_interpreter'}", PluginError, "got 'depth': 'depth_interpreter'"),
        ("{'depth': 3}", PluginError, "got 'depth': 3"),
        ("{'Depth of': 'a:b'}", PluginError, "lower-case letters, digits and underscores"),
        ("{'vmap': 'a:b'}", DuplicateRegistrationError, "rule kind 'vmap' is the kernel's own"),
        ("{'primitives': 'a:b'}", DuplicateRegistrationError, "rule kind 'primitives' is the kernel's own"),
    ],
)
def test_a_declaration_that_is_wrong_fails_the_plugin(
    declared: str, error: type[Exception], text: str, site: Site, fresh: PluginManager
) -> None:
    site.add("depth", f"@hookimpl\ndef corejax_declare_rule_kinds():\n    return {declared}\n")
    fresh.load()
    record = fresh.records["depth"]
    assert record.status == "failed" and type(record.fault) is error and text in str(record.fault)
    assert not fresh.rule_kinds


def test_two_plugins_with_one_rule_kind(depth_site: Site, fresh: PluginManager) -> None:
    depth_site.add("second", "@hookimpl\ndef corejax_declare_rule_kinds():\n    return {'depth': 'a:b'}\n")
    plugins.load_everything()
    fault = fresh.records["second"].fault
    assert isinstance(fault, DuplicateRegistrationError)
    assert "'depth' (corejax-depth 1.0)" in str(fault) and "'second' (corejax-second 1.0)" in str(fault)
    assert registries["depth"].provenance.module == "depth_plugin.interpreter"


def test_a_registry_of_that_kind_made_by_somebody_else(depth_site: Site, fresh: PluginManager) -> None:
    made = extend.RuleRegistry("depth", "another rule", "")
    fresh.load_rule_kinds()
    assert isinstance(fresh.records["depth"].late_faults["depth rules"], DuplicateRegistrationError)
    assert registries["depth"] is made


def test_a_plugin_that_fails_later_takes_its_registry_along(site: Site, fresh: PluginManager) -> None:
    late = """
    @hookimpl
    def corejax_declare_rule_kinds():
        return {"depth": "depth_plugin.interpreter:depth_rules"}

    @hookimpl
    def corejax_register_primitives():
        import depth_plugin.interpreter
        raise ZeroDivisionError("too late")
    """
    site.add_package("depth", plugin=late, interpreter=INTERPRETER)
    before = tables()
    fresh.load_rule_kinds()
    assert "depth" in registries
    fresh.load_primitives()
    assert isinstance(fresh.records["depth"].fault, ZeroDivisionError)
    assert "depth" not in registries and not fresh.rule_kinds
    assert {name: entries for name, entries in tables().items() if entries} == {
        name: entries for name, entries in before.items() if entries
    }


def test_a_plugin_that_is_registered_again_has_its_registry_back(depth_site: Site, fresh: PluginManager) -> None:
    plugin = importlib.import_module("depth_plugin.plugin")
    fresh.load()
    fresh.unregister("depth")
    assert "depth" not in fresh.rule_kinds
    fresh.register(plugin, "depth")
    fresh.load_rule_kinds()
    registry = registries["depth"]
    fresh.unregister("depth")
    assert "depth" not in registries
    fresh.register(plugin, "depth")
    fresh.load_rule_kinds()
    assert registries["depth"] is registry


def test_an_isolated_rule_kind_is_gone_afterwards() -> None:
    class Plugin:
        @extend.hookimpl
        def corejax_declare_rule_kinds(self) -> dict[str, str]:
            return {"toy_kind": f"{__name__}:registry_made_inside"}

    with isolated_plugins() as manager:
        globals()["registry_made_inside"] = extend.RuleRegistry("toy_kind", "toy rule", "...", required=False)
        manager.register(Plugin(), "toy")
        manager.load_rule_kinds()
        assert "toy_kind" in registries and not manager.problems()
    del globals()["registry_made_inside"]
    assert "toy_kind" not in registries


# -- what interpreters are made of ---------------------------------------------------------------------------------


def test_find_primitive_loads_plugins_only_for_names_that_are_not_there(site: Site, fresh: PluginManager) -> None:
    site.add("ops", OPERATIONS)
    with isolated_name("here.already") as primitive:
        assert find_primitive("here.already") is primitive
        assert not site.is_imported("ops")
    found = find_primitive("ops.twice")
    assert found is not None and found.provenance.plugin == "ops"
    assert find_primitive("ops.nothing") is None


class isolated_name:
    """A primitive for a `with` block."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Primitive:
        return Primitive(self.name, impl=lambda x: x, abstract_eval=lambda x: x)

    def __exit__(self, *exc: Any) -> None:
        del primitives[self.name]


def test_flat_decomposition_gives_a_list_or_none() -> None:
    with isolated_plugins():
        one = Primitive("one", decomposition=lambda x, *, n: x)
        several = Primitive("several", decomposition=lambda x: (x, x), multiple_results=True)
        flat_one, flat_several = flat_decomposition(one), flat_decomposition(several)
        assert flat_one is not None and flat_one(3, n=2) == [3]
        assert flat_several is not None and flat_several(3) == [3, 3]
        assert flat_decomposition(Primitive("none", impl=lambda x: x)) is None


def test_memoised_keeps_results_with_the_program_and_the_settings() -> None:
    program = stage_closed(lambda x: [x], [extend.ShapedArray((), np.dtype(np.float32))])
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return len(made)

    assert [memoised(program, ("toy", 1), make) for _ in range(3)] == [1, 1, 1]
    assert memoised(program, ("toy", 2), make) == 2
    with config.override(default_dtype_bits=64):
        assert memoised(program, ("toy", 1), make) == 3
    assert memoised(program, ("toy", 1), make) == 1
