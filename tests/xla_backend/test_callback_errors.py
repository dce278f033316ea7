"""What an impl raises reaches the user as it is, eagerly and from compiled programs that call it back."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import jit, lax, vmap
from corejax.errors import HostCallbackError
from corejax.extend import Primitive
from corejax.extend.transforms import trace_stack

pytest.importorskip("jaxlib")

from corejax_xla_backend._lowering import host_callback

pytestmark = pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
X = np.array([3.0, 1.0, 2.0], np.float32)
_numbers = itertools.count()


class Divergence(Exception):
    """An author's own error, with more to it than a text."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"diverged at step {self.step}"


def make(impl: Any) -> Primitive:
    return Primitive(f"callback_errors.p{next(_numbers)}", impl=impl, abstract_eval=lambda x: x.strip_weak_type())


def strict() -> Primitive:
    def impl(x: Any) -> Any:
        if x.max() > 5:
            raise Divergence(7)
        return x * 2

    return make(impl)


def raises(call: Any, primitive: Primitive, error: type[BaseException] = Divergence) -> Any:
    with pytest.raises(error) as info:
        call()
    assert type(info.value) is error
    assert len(info.value.__notes__) == 1, info.value.__notes__
    [note] = info.value.__notes__
    for word in (f"impl rule of primitive '{primitive.name}'", f"module {__name__}", "test_callback_errors.py"):
        assert word in note, note
    assert len(trace_stack()) == 1
    return info.value


WAYS: dict[str, Any] = {
    "eager": lambda p: p.bind,
    "jit": lambda p: jit(lambda x: p.bind(x) + 1),
    "jit of jit": lambda p: jit(lambda x: jit(p.bind)(x) + 1),
    "compiled ahead": lambda p: jit(p.bind).lower(X).compile(),
    "vmap of jit": lambda p: lambda x: vmap(jit(p.bind))(x[None]),
    "jit of vmap": lambda p: lambda x: jit(vmap(p.bind))(x[None]),
    "scan": lambda p: lambda x: lax.scan(lambda c, _: (p.bind(c), c), x, None, 3),
    "jit of scan": lambda p: jit(lambda x: lax.scan(lambda c, _: (p.bind(c), c), x, None, 3)),
    "while": lambda p: lambda x: lax.while_loop(lambda c: jnp.sum(c) < 99, p.bind, x),
    "jit of while": lambda p: jit(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 99, p.bind, x)),
    "jit of cond": lambda p: jit(lambda x: lax.cond(x[0] > 0, p.bind, lambda y: y, x)),
    "jit of map": lambda p: jit(lambda x: lax.map(p.bind, x[None])),
    "linearize": lambda p: lambda x: cj.linearize(lambda y: y * jit(p.bind)(x), x),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_authors_class(way: str) -> None:
    primitive = strict()
    f = WAYS[way](primitive)
    if "while" not in way and "scan" not in way:
        f(X)
    for _ in range(2):
        assert raises(lambda: np.asarray(cj.tree_util.tree_leaves(f(X + 5))[0]), primitive).step == 7


def test_the_line_is_that_of_the_application() -> None:
    p = strict()

    def first(x: Any) -> Any:
        return p.bind(x)

    def second(x: Any) -> Any:
        return p.bind(x)

    f = jit(lambda x: (first(x[0]), second(x[1])))
    for i, name in enumerate(("first", "second")):
        x = np.ones((2, 3), np.float32)
        x[i] = 9
        error = raises(lambda x=x: f(x), p)
        assert f"({name})" in error.__notes__[0]


def test_functions_without_a_frame() -> None:
    p = make(np.linalg.cholesky)
    singular = -np.eye(3, dtype=np.float32)
    for f in (p.bind, jit(p.bind), lambda x: lax.map(p.bind, x[None])):
        raises(lambda f=f: f(singular), p, np.linalg.LinAlgError)
    q = make(memoryview.tobytes)
    for f in (q.bind, jit(q.bind)):
        raises(lambda f=f: f(X), q, TypeError)


def test_two_at_once() -> None:
    def failing(error: type[Exception]) -> Primitive:
        def impl(x: Any) -> Any:
            raise error(3)

        return make(impl)

    one, other = failing(Divergence), failing(KeyError)
    f = jit(lambda x: one.bind(x) + other.bind(x))
    with pytest.raises((Divergence, KeyError)) as info:
        f(X)
    names = {Divergence: one.name, KeyError: other.name}
    assert names[type(info.value)] in info.value.__notes__[0]


def test_on_several_threads() -> None:
    def impl(x: Any) -> Any:
        raise Divergence(int(x[0]))

    f, steps = jit(make(impl).bind), []

    def work(i: int) -> None:
        for k in range(5):
            try:
                f(np.full(3, 10 * i + k, np.float32))
            except Divergence as error:
                steps.append(error.step)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(steps) == sorted(10 * i + k for i in range(4) for k in range(5))


def test_errors_that_cannot_be_shown() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def impl(x: Any) -> Any:
        raise Mute

    with pytest.raises(Mute):
        jit(make(impl).bind)(X)


def test_an_error_that_is_gone_says_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_callback, "_FAILURES_LIMIT", 0)
    p = strict()
    with pytest.raises(HostCallbackError) as info:
        jit(p.bind)(X + 5)
    text = str(info.value)
    assert p.name in text and text.endswith("Divergence: diverged at step 7") and "callback failure" not in text


def test_an_interrupt_before_the_callback_can_keep_it_is_one() -> None:
    text = "INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):\n  File 'x', line 1\n{}: "
    interrupted, other = (RuntimeError(text.format(name)) for name in ("KeyboardInterrupt", "OSError"))
    assert type(host_callback.original_failure(interrupted)) is KeyboardInterrupt
    assert host_callback.original_failure(other) is other
