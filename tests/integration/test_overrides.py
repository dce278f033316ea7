"""Overrides of rules under jit: switching them takes effect at once; what a translation raises names its author."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import corejax
from corejax.extend import Primitive, hookimpl, jvp_rules, xla_translations
from corejax.extend.plugins import isolated_plugins

pytest.importorskip("corejax_xla_backend")

X = np.array([1.0, 2.0], np.float32)


@pytest.fixture
def negated() -> Iterator[Primitive]:
    """`x` negated, whose translation and derivative a plugin replaces by wrong ones."""

    class Acme:
        @hookimpl
        def corejax_register_primitives(self) -> None:
            p = Primitive("overrides_test.neg", impl=np.negative, abstract_eval=lambda x: x, tags=("elementwise",))
            xla_translations.register(p, lambda ctx, avals, vals: ctx.op("negate", *vals, out=avals[0]))
            jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)))
            xla_translations.register(p, lambda ctx, avals, vals: vals[0], platform="cpu", override=True)
            jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), tangents[0]), override=True)

    with isolated_plugins() as manager:
        manager.register(Acme(), "acme", "1.0")
        manager.load_primitives()
        assert manager.problems() == []
        # The rules above are of this module, which belongs to no plugin: whose they are is for the manager to say.
        record = manager.records["acme"]
        manager.owner_of = lambda module: (record.name, "1.0", None) if module == __name__ else None  # type: ignore[method-assign,assignment]
        yield corejax.extend.primitives["overrides_test.neg"]


def test_jitted_functions_follow_the_setting(negated: Primitive) -> None:
    from corejax_xla_backend._jit.jit import jit

    f = jit(lambda x: negated.bind(x))
    g = jit(lambda x: corejax.jvp(lambda y: negated.bind(y), (x,), (x,))[1])
    program = corejax.make_jaxpr(jit(negated.bind))(X)
    run = lambda: [np.asarray(h(X)).tolist() for h in (f, g, lambda x: corejax.eval_jaxpr(program.jaxpr, [], [x])[0])]
    assert run() == [[1, 2]] * 3
    with corejax.config.override(rule_overrides=False):
        assert run() == [[-1, -2]] * 3
    assert run() == [[1, 2]] * 3
    with corejax.config.override(rule_overrides="-acme"):
        assert run() == [[-1, -2]] * 3
    with corejax.config.override(rule_overrides="acme"):
        assert run() == [[1, 2]] * 3


def test_error_in_a_translation_names_rule_and_line() -> None:
    from corejax_xla_backend._jit.jit import jit

    def fails(ctx: object, avals: object, vals: object) -> None:
        raise ZeroDivisionError("nobody's fault")

    with isolated_plugins():
        p = Primitive("overrides_test.p", impl=np.negative, abstract_eval=lambda x: x)
        xla_translations.register(p, fails)
        with pytest.raises(ZeroDivisionError) as caught:
            jit(lambda x: p.bind(x))(X)
    [note] = caught.value.__notes__
    assert note.startswith("This came out of the XLA translation rule of primitive 'overrides_test.p', from module ")
    assert "test_overrides.py:" in note.partition("needed at")[2]
