"""Large operations go to the derived rule where the impl rule says so, and back to it where that cannot run."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import observe
from corejax.errors import BackendError
from corejax.extend import Array, Derivation, Primitive, impl_rules
from corejax.ir import eval_jaxpr
from corejax_eager.large import SIZE

_numbers = itertools.count()
SMALL, LARGE = np.ones(SIZE - 1, np.float32), np.ones((2, SIZE // 2), np.float32)


class Derived:
    """A primitive that adds one by its impl rule and two by the rule that is derived."""

    def __init__(
        self, abstract_eval: Any = lambda x, **params: x, impl: Any = None, tags: Any = (), **flags: Any
    ) -> None:
        self.fails = False
        self.p = Primitive(f"large_test.p{next(_numbers)}", abstract_eval=abstract_eval, tags=tags)
        impl_rules.register(self.p, impl or (lambda x, **params: x + x.dtype.type(1)), **flags)

    def rule(self, x: Array, **params: Any) -> Array:
        if self.fails:
            raise BackendError("not in this process")
        out = self.p.abstract((x.aval,), params)[0]
        return Array(np.resize(x._fetch() + x.dtype.type(2), out.shape), out)

    def __call__(self, x: Any, **params: Any) -> float:
        return float(np.ravel(self.p.bind(cj.extend.as_array(x), **params))[0])


@pytest.fixture
def derived(request: pytest.FixtureRequest) -> Any:
    made: list[Derived] = []

    def make(**flags: Any) -> Derived:
        made.append(Derived(**flags))
        return made[-1]

    found = Derivation(
        "large_test", lambda p: next((d.rule for d in made if d.p is p), None), "nothing", flags={"device": True}
    )
    impl_rules.derivations.append(found)
    yield make
    impl_rules.derivations.remove(found)


def test_size_and_dtype_decide(derived: Any) -> None:
    f = derived(large=("float32", "int8"))
    assert [f(SMALL), f(LARGE), f(LARGE, n=1)] == [2.0, 3.0, 3.0]
    assert [f(LARGE.astype(np.int8)), f(LARGE.astype(np.float64))] == [3.0, 2.0]
    assert derived()(LARGE) == 2.0


def test_sizes_by_dtype_may_be_smaller(derived: Any) -> None:
    f = derived(large={"float32": 100, "int8": 2 * SIZE})
    few, many = np.ones(99, np.float32), np.ones(100, np.float32)
    assert [f(few), f(many), f(many, n=1), f(LARGE)] == [2.0, 3.0, 3.0, 3.0]
    assert [f(many.astype(np.int8)), f(LARGE.astype(np.int8)), f(many.astype(np.float64))] == [2.0, 2.0, 2.0]
    program = cj.make_jaxpr(lambda x: f.p.bind(f.p.bind(x)))(many)
    for _ in range(5):  # step by step, and written out
        assert float(eval_jaxpr(program.jaxpr, program.consts, [cj.extend.as_array(many)])[0][0]) == 5.0
    together = cj.extend.remembered(lambda x: f.p.bind(x))
    assert [float(together(cj.extend.as_array(many))[0]) for _ in range(6)] == [3.0] * 6


def test_a_function_is_asked_of_large_operands_too(derived: Any) -> None:
    asked = []

    def leaves(avals: Any, *, n: int = 0) -> bool:
        asked.append((avals[0].size, n))
        return n > 0

    f = derived(
        large=leaves, abstract_eval=lambda x, **params: x.update(shape=()), impl=lambda x, **params: x.ravel()[0]
    )
    small, large = (float(f.p.bind(cj.extend.as_array(x), n=1)) for x in (SMALL, LARGE))
    assert (small, large) == (1.0, 3.0) and asked == [(SIZE, 1)]
    assert float(f.p.bind(cj.extend.as_array(LARGE))) == 1.0
    program = cj.make_jaxpr(lambda x: f.p.bind(x, n=1))(LARGE)
    for _ in range(5):  # until it would be written out
        assert float(eval_jaxpr(program.jaxpr, [], [cj.extend.as_array(LARGE)])[0]) == 3.0


def test_a_function_that_fails_is_the_rules(derived: Any) -> None:
    f = derived(large=lambda avals: True)  # without the params
    with pytest.raises(TypeError, match="unexpected keyword argument 'n'") as caught:
        f(LARGE, n=1)
    assert any(f.p.name in note for note in caught.value.__notes__)


def test_what_rounds_nothing_is_left_when_it_comes_again(derived: Any) -> None:
    f = derived(large=("float32", "complex64"), tags=("exact",))
    assert [f(LARGE), f(LARGE, n=1), f(LARGE), f(LARGE, n=1)] == [2.0, 2.0, 3.0, 3.0]
    x = cj.extend.as_array(LARGE.astype(np.complex64))
    assert complex(np.asarray(f.p.bind(x))[0, 0]) == 3.0  # which may be rounded otherwise


def test_numpy_arrays_and_programs(derived: Any) -> None:
    f = derived(large=("float32",))
    assert float(f.p.bind(LARGE)[0, 0]) == 3.0
    program = cj.make_jaxpr(lambda x: f.p.bind(x))(LARGE)
    assert float(eval_jaxpr(program.jaxpr, [], [cj.extend.as_array(LARGE)])[0][0, 0]) == 3.0


def test_where_nothing_is_derived_or_runs_the_impl_rule_does_it(derived: Any) -> None:
    alone = Primitive(f"large_test.p{next(_numbers)}", abstract_eval=lambda x: x)
    impl_rules.register(alone, lambda x: x + x.dtype.type(1), large=("float32",))
    assert float(alone.bind(LARGE)[0, 0]) == 2.0
    f = derived(large=("float32",))
    f.fails = True
    assert f(LARGE) == 2.0
    f.fails = False
    assert f(LARGE) == 3.0


def test_a_rule_in_its_place_does_large_operations_too(derived: Any) -> None:
    f = derived(large=("float32",))
    impl_rules.register(f.p, lambda x: x + x.dtype.type(5), override=True)
    assert f(LARGE) == 6.0
    impl_rules.unregister(f.p)
    assert f(LARGE) == 3.0


def test_watchers_are_told_which_rule_ran(derived: Any) -> None:
    f = derived(large=("float32",))
    seen = []
    with observe.watching(lambda step, begins: seen.append(step) if begins and step.kind == "impl" else None):
        f(SMALL), f(LARGE)
    assert [(step.kind, step.rule.derived) for step in seen] == [("impl", None), ("impl", "large_test")]
