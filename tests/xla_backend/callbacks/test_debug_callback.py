"""`debug.callback` and `debug.print`: what they show under every transformation; jax is the oracle of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import debug, jit, lax

pytest.importorskip("jaxlib")

WAYS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "jit": jit}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
ordering = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
X = np.arange(3, dtype=np.float32)


def lines(capsys: Any) -> list[str]:
    return capsys.readouterr().out.splitlines()


# -- texts ------------------------------------------------------------------------------------------------------------

FORMATS: dict[str, Any] = {
    "x is {}": ((1.5,), {}),
    "{x:6.2f}|{y:>4d}|{x!r}": ((), {"x": np.float32(2 / 3), "y": np.int32(7)}),
    "{1} {0}": ((np.arange(3), True), {}),
    "{0.shape} {k[a]}": ((np.ones((2, 0), np.float16),), {"k": {"a": np.float32(1)}}),
    "{} {name}": ((None,), {"name": [np.ones(2, np.float32), "s"]}),
    "": ((), {}),
    "no more": ((), {}),
    "{} {:.2f} {}": ((2, 0.125, True), {}),
}  # fmt: skip


def test_texts_are_those_of_jax(capsys: Any) -> None:
    jax = pytest.importorskip("jax")

    for fmt, (args, kwargs) in FORMATS.items():
        jax.debug.print(fmt, *args, **kwargs)
        jax.effects_barrier()
        wanted = lines(capsys)
        debug.print(fmt, *args, **kwargs)
        jit(lambda fmt=fmt, args=args, kwargs=kwargs: debug.print(fmt, *args, **kwargs))()
        assert lines(capsys) == wanted * 2


def test_formats_are_checked_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"no placeholder for 'y'\. Is it an f-string\?"):
        debug.print("x", y=1)
    with pytest.raises(ValueError, match="no placeholder for 1"):
        debug.print("{}", 1, 2)
    with pytest.raises(IndexError, match="a placeholder for 1, but there is no such argument"):
        debug.print("{} {}", 1)
    with pytest.raises(KeyError, match="a placeholder for 'y'"):
        jit(lambda x: debug.print("{y}", x=x))(1.0)
    with pytest.raises(TypeError, match="the format must be a string, got 3 of type int"):
        debug.print(3)
    with pytest.raises(TypeError, match="the callback must be a function, got 'x'"):
        debug.callback("x")


def test_unchecked_formats_and_options_given_first(capsys: Any) -> None:
    debug.print("{{}} {}", 1)
    debug.print("{{}}")
    debug.print("sum", np.float32(2), np.int32(3), skip_format_check=True)
    debug.print(ordered=True)("{ordered} {fmt}", ordered="yes", fmt=1)
    debug.callback(ordered=True)(lambda x, *, ordered: print(x, ordered), 1, ordered=2)
    assert lines(capsys) == ["{} 1", "{}", "sum 2.0 3", "yes 1", "1 2"]
    with pytest.raises(TypeError, match="without a format string"):
        debug.print(x=1)
    with pytest.raises(TypeError, match="without a callback"):
        debug.callback(x=1)


def test_print_options_are_those_of_the_call(capsys: Any) -> None:
    with np.printoptions(precision=2):
        f = jit(lambda x: debug.print("{}", x))
        f(X / 3)
    f(X / 3)
    assert lines(capsys) == ["[0.   0.33 0.67]"] * 2


@way
def test_numbers_and_what_no_dtype_holds(way: Any, capsys: Any) -> None:
    seen: list[Any] = []
    f = lambda x: (debug.print("{} {} {!r}", x.shape, 2**70, np.str_("z")), debug.callback(seen.extend, [x, 1, 2**70]))
    way(f)(X)
    assert lines(capsys) == [f"(3,) {2**70} {np.str_('z')!r}"]
    assert [type(x) for x in seen] == [cj.Array, cj.Array, int]


def test_log(caplog: Any) -> None:
    with caplog.at_level("INFO"):
        jit(lambda x: debug.log("x is {}", x))(3.0)
    (record,) = caplog.records
    assert (record.getMessage(), record.filename, record.name) == (
        "x is 3.0",
        "test_debug_callback.py",
        "corejax.debug",
    )
    assert record.lineno == test_log.__code__.co_firstlineno + 2


def test_tracing_alone_calls_nothing(capsys: Any) -> None:
    f = lambda x: (debug.print("{}", x), x)[1]
    cj.make_jaxpr(cj.grad(f))(1.0)
    assert cj.eval_shape(f, 1.0).shape == () and jit(f).lower(1.0).compile()
    assert not lines(capsys)


def test_linearised_functions_show_tangents(capsys: Any) -> None:
    @cj.custom_jvp
    def f(x: Any) -> Any:
        return x * x

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        debug.print("{} {}", *primals, *tangents)
        return f(*primals), 2 * primals[0] * tangents[0]

    _, push = cj.linearize(f, 3.0)
    assert not lines(capsys)
    for t in (1.0, 2.0):
        assert push(t) == jit(push)(t) == 6 * t
        assert lines(capsys) == [f"3.0 {t}"] * 2
    assert cj.grad(f)(3.0) == 6.0
    assert not lines(capsys), "there is no tangent"


@way
def test_arguments_that_are_no_arrays(way: Any) -> None:
    seen: list[Any] = []
    thing = object()
    way(
        lambda x: debug.callback(lambda *args, **kwargs: seen.append((args, kwargs)), "a", x, [x, thing], k={"s": "b"})
    )(X)
    ((name, x, (y, same)), kwargs), = seen  # fmt: skip
    assert (name, kwargs, same is thing, type(x), type(y)) == ("a", {"k": {"s": "b"}}, True, cj.Array, cj.Array)
    np.testing.assert_array_equal(x, X)


class Labelled:
    """A node whose metadata cannot be hashed, and have no equality that is a truth value."""

    def __init__(self, value: Any, labels: Any) -> None:
        self.value, self.labels = value, labels


cj.tree_util.register_pytree_node(
    Labelled, lambda node: ((node.value,), node.labels), lambda labels, children: Labelled(children[0], labels)
)


@way
def test_arguments_with_metadata_that_cannot_be_hashed(way: Any) -> None:
    seen: list[Labelled] = []

    def show(x: Any, labels: Any) -> Any:
        node = Labelled(x, np.array(labels))
        debug.callback(seen.append, node)
        return cj.pure_callback(lambda node: node.value + len(node.labels), X, node)

    one, two = way(lambda x: (show(x, ["a"]), show(x, ["b", "c"])))(X)
    assert sorted("".join(node.labels) for node in seen) == ["a", "bc"]
    np.testing.assert_array_equal(two - one, np.ones(3))


# -- transformations ---------------------------------------------------------------------------------------------------


@way
@ordering
def test_once_under_each_transformation(ordered: bool, way: Any, capsys: Any) -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        debug.print("{:.3f}", y, ordered=ordered)
        return y * x

    for transform in (
        cj.grad(f),
        cj.grad(jit(f)),
        lambda x: cj.jvp(f, (x,), (x,)),
        lambda x: cj.vjp(f, x)[1](1.0),
        cj.grad(cj.checkpoint(f)),
        cj.grad(cj.checkpoint(lambda x: jit(f)(x) * 2)),
        cj.grad(cj.grad(f)),
        lambda x: cj.linearize(f, x)[1](x),
        cj.hessian(f),
    ):
        way(transform)(2.0)
        assert lines(capsys) == ["0.909"]


@way
@ordering
def test_vmap_shows_each_element(ordered: bool, way: Any, capsys: Any) -> None:
    f = lambda x, y: debug.print("{} {}", x, y, ordered=ordered)
    way(cj.vmap(f, in_axes=(0, None)))(X, 7)
    assert sorted(lines(capsys)) == ["0.0 7", "1.0 7", "2.0 7"]
    way(cj.vmap(cj.vmap(f)))(X[None], X[None])
    assert sorted(lines(capsys)) == ["0.0 0.0", "1.0 1.0", "2.0 2.0"]
    way(cj.vmap(lambda x: debug.print("once")))(X)
    way(cj.vmap(f))(X[:0], X[:0])
    assert lines(capsys) == ["once"]


@way
@ordering
def test_vmap_shows_the_branches_that_are_taken(ordered: bool, way: Any, capsys: Any) -> None:
    note = lambda fmt, x: debug.print(fmt, x, ordered=ordered)

    def branch(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: (note("pos {}", x), x * x)[1], lambda x: (note("neg {}", x), x)[1], x)

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 2, lambda c: (note("at {}", c), c + 1)[1], x)

    np.testing.assert_array_equal(way(cj.vmap(branch))(X), [0, 1, 4])
    assert sorted(lines(capsys)) == ["neg 0.0", "pos 1.0", "pos 2.0"]
    np.testing.assert_array_equal(way(cj.vmap(loop))(X), [2, 2, 2])
    assert sorted(lines(capsys)) == ["at 0.0", "at 1.0", "at 1.0"]
    np.testing.assert_array_equal(way(cj.grad(lambda x: cj.vmap(branch)(x).sum()))(X), [1, 2, 4])
    assert sorted(lines(capsys)) == ["neg 0.0", "pos 1.0", "pos 2.0"]


@way
@ordering
def test_loops_and_branches(ordered: bool, way: Any, capsys: Any) -> None:
    def body(c: Any, x: Any) -> Any:
        debug.print("{}", x, ordered=ordered)
        lax.cond(x > 0, lambda: debug.print("yes", ordered=ordered), lambda: None)
        return c * x, None

    f = lambda c: (
        lax.scan(body, c, X)[0] + lax.fori_loop(0, 2, lambda i, s: (debug.print("i", ordered=ordered), s)[1], c)
    )
    wanted = ["0.0", "1.0", "yes", "2.0", "yes", "i", "i"]
    for transform in (lambda f: f, cj.grad):
        way(transform(f))(1.0)
        shown = lines(capsys)
        assert shown == wanted if ordered else sorted(shown) == sorted(wanted)


@way
def test_rules_of_custom_derivatives_show_their_values(way: Any, capsys: Any) -> None:
    @cj.custom_vjp
    def f(x: Any) -> Any:
        debug.print("primal {}", x)
        return x * x

    def forward(x: Any) -> Any:
        debug.print("forward {}", x)
        return x * x, x

    def backward(x: Any, ct: Any) -> Any:
        debug.print("backward {} {}", x, ct)
        return (2 * x * ct,)

    f.defvjp(forward, backward)
    assert way(cj.grad(f))(3.0) == 6.0
    assert sorted(lines(capsys)) == ["backward 3.0 1.0", "forward 3.0"]
    way(f)(3.0)
    assert lines(capsys) == ["primal 3.0"]

    @cj.custom_jvp
    def g(x: Any) -> Any:
        return x * x

    @g.defjvp
    def g_jvp(primals: Any, tangents: Any) -> Any:
        debug.print("{} {}", *primals, *tangents)
        return g(*primals), 2 * primals[0] * tangents[0]

    assert way(lambda x: cj.jvp(g, (x,), (2.0,))[1])(3.0) == 12.0
    assert lines(capsys) == ["3.0 2.0"]


# -- failures ----------------------------------------------------------------------------------------------------------


@way
@ordering
def test_what_a_callback_raises_reaches_the_caller(ordered: bool, way: Any) -> None:
    error = KeyError("missing")

    def refuse(x: Any) -> None:
        raise error

    with pytest.raises(KeyError) as info:
        way(lambda x: debug.callback(refuse, x, ordered=ordered))(1.0)
    assert info.value is error
    assert "refuse' of debug.callback, called at" in error.__notes__[0]
    assert "test_debug_callback.py" in error.__notes__[0]


@way
def test_a_format_that_does_not_fit_names_the_line(way: Any) -> None:
    with pytest.raises(ValueError, match="format code 'd'") as info:
        way(lambda x: debug.print("{:d}", x))(1.5)
    assert "'{:d}' of debug.print, called at" in info.value.__notes__[0]


@way
def test_interrupts(way: Any) -> None:
    def interrupt(x: Any) -> None:
        raise KeyboardInterrupt

    f = way(lambda x: (debug.callback(interrupt, x), x + 1)[1])
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            f(1.0)
    seen: list[Any] = []
    assert way(lambda x: (debug.callback(seen.append, x), x + 1)[1])(1.0) == 2.0
    assert seen == [1.0]
