"""Tracebacks show the user's frames, those of plugin authors, and a line for what was left out."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive
from corejax.settings.config import config

X = np.ones((5, 4), np.float32)
W = np.ones((3, 2), np.float32)


def layer(x):
    return jnp.sum(jnp.asarray(x) @ W)


def call(f, *args):
    return f(*args)


def raised(f, *args):
    with pytest.raises(Exception) as info:
        call(f, *args)
    return info.value


def frames(error):
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != "<corejax>"]


def functions(error):
    return [frame.name for frame in frames(error)]


def files(error):
    return {os.path.basename(frame.filename) for frame in frames(error)}


def left_out(error):
    """The one line for what was left out, of the traceback as it is shown."""
    (line,) = [line for line in "".join(traceback.format_exception(error)).splitlines() if "left out" in line]
    return line


def body(c, x):
    return c, layer(x)


NESTS = {
    "operator": lambda: call(layer, X),
    "jit of vmap of grad": lambda: cj.jit(cj.vmap(cj.grad(layer)))(X),
    "grad": lambda: cj.grad(layer)(X[0]),
    "value_and_grad": lambda: cj.value_and_grad(layer)(X[0]),
    "jvp": lambda: cj.jvp(layer, (X[0],), (X[0],)),
    "vjp": lambda: cj.vjp(layer, X[0]),
    "linearize": lambda: cj.linearize(layer, X[0]),
    "linear_transpose": lambda: cj.linear_transpose(layer, X[0]),
    "jacfwd": lambda: cj.jacfwd(layer)(X[0]),
    "hessian": lambda: cj.hessian(layer)(X[0]),
    "vmap": lambda: cj.vmap(layer)(X),
    "make_jaxpr": lambda: cj.make_jaxpr(layer)(X[0]),
    "eval_shape": lambda: cj.eval_shape(layer, X[0]),
    "jit with static arguments": lambda: cj.jit(lambda n, x: layer(x), static_argnums=0)(3, X[0]),
    "lower": lambda: cj.jit(layer).lower(X[0]),
    "scan": lambda: lax.scan(body, 0, X),
    "jit of scan": lambda: cj.jit(lambda x: lax.scan(body, 0, x))(X),
    "cond": lambda: lax.cond(True, layer, layer, X[0]),
    "switch": lambda: lax.switch(0, [layer, layer], X[0]),
    "while_loop": lambda: lax.while_loop(lambda c: layer(c) > 0, lambda c: c, X[0]),
    "fori_loop": lambda: lax.fori_loop(0, 2, lambda i, c: c * layer(c), X[0]),
    "map": lambda: lax.map(layer, X),
    "associative_scan": lambda: lax.associative_scan(lambda a, b: a + layer(b), X),
    "checkpoint": lambda: cj.grad(cj.checkpoint(layer))(X[0]),
    "named_call": lambda: cj.named_call(layer, name="layer")(X[0]),
    "custom_jvp": lambda: cj.grad(_custom_jvp)(X[0]),
    "custom_vjp": lambda: cj.grad(_custom_vjp)(X[0]),
    "grad of jit of scan": lambda: cj.grad(lambda x: cj.jit(lambda x: lax.scan(body, 0, x)[1].sum())(x))(X),
}
_custom_jvp = cj.custom_jvp(lambda x: jnp.sum(x))
_custom_jvp.defjvp(lambda primals, tangents: (jnp.sum(primals[0]), layer(tangents[0])))
_custom_vjp = cj.custom_vjp(lambda x: jnp.sum(x))
_custom_vjp.defvjp(lambda x: (jnp.sum(x), None), lambda res, ct: (layer(X[0]),))


@pytest.mark.parametrize("name", NESTS)
def test_only_the_users_frames_are_shown(name):
    error = raised(NESTS[name])
    assert files(error) == {"test_tracebacks.py"}
    assert functions(error)[:2] == ["raised", "call"] and functions(error)[-1] == "layer"
    assert isinstance(error, TypeError) and "matmul" in str(error)
    assert "traceback_filtering" in left_out(error)
    assert not any("left out" in note for note in getattr(error, "__notes__", ()))
    assert error.__context__ is None and error.__cause__ is None


def test_the_example_of_the_issue_is_short():
    error = raised(NESTS["jit of vmap of grad"])
    assert functions(error) == ["raised", "call", "<lambda>", "layer"]
    with config.override(traceback_filtering="off"):
        whole = raised(NESTS["jit of vmap of grad"])
    hidden = len(functions(whole)) - 4
    assert hidden > 15 and f" {hidden} frames are left out" in left_out(error)
    assert len(traceback.format_exception(error)) == 7  # a heading, four lines of users, one of ours, the message


@pytest.mark.parametrize("mode", ["auto", "remove_frames", "off"])
def test_modes(mode):
    with config.override(traceback_filtering=mode):
        error = raised(NESTS["vmap"])
    assert ("batching.py" in files(error)) == (mode == "off")
    with pytest.raises(ValueError, match="auto, off, remove_frames or quiet"):
        config.update("traceback_filtering", "tidy")
    with pytest.raises(ValueError, match="auto, off, remove_frames or quiet"):
        config.update("traceback_filtering", False)


def test_the_environment_variable():
    program = (
        "import corejax as cj, corejax.numpy as jnp, traceback\n"
        "try: cj.grad(lambda x: x @ x)(jnp.ones((2, 3)))\n"
        "except TypeError as e: print(len(traceback.extract_tb(e.__traceback__)))\n"
    )
    counts = {}
    for mode in ("off", "auto", "remove_frames"):
        env = {**os.environ, "COREJAX_TRACEBACK_FILTERING": mode}
        out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        counts[mode] = int(out.stdout)
    assert counts["remove_frames"] == 2 < counts["auto"] == 3 < counts["off"]


def test_errors_of_arguments_point_to_the_call():
    error = raised(lambda: cj.grad(layer)(3))
    assert functions(error) == ["raised", "call", "<lambda>"] and "real- or complex-valued" in str(error)
    error = raised(lambda: cj.jit(layer)("text"))
    assert functions(error) == ["raised", "call", "<lambda>"]


def _failing_rule(primals, tangents):
    return _deeper(primals)


def _deeper(primals):
    return jnp.sum(primals[0]) @ 3


def test_the_frames_of_an_authors_rules_are_shown_and_the_rule_is_named():
    p = Primitive("test_tracebacks.p", impl=lambda x: x, abstract_eval=lambda x: x, jvp=_failing_rule)
    error = raised(lambda: cj.jit(cj.grad(lambda x: jnp.sum(p.bind(x))))(X[0]))
    assert functions(error)[-2:] == ["_failing_rule", "_deeper"]
    assert any("JVP rule of primitive 'test_tracebacks.p'" in note for note in error.__notes__)
    assert left_out(error) and len(error.__notes__) == 1


def test_exceptions_of_users_keep_what_led_to_them():
    def f(x):
        try:
            layer(x)
        except TypeError as error:
            raise KeyError("wrong") from error

    error = raised(lambda: cj.jit(f)(X[0]))
    assert isinstance(error, KeyError) and functions(error)[-1] == "f"
    assert functions(error.__cause__) == ["f", "layer"]

    def g(x):
        raise ZeroDivisionError

    error = raised(lambda: cj.vmap(cj.vmap(g))(X))
    assert functions(error) == ["raised", "call", "<lambda>", "g"] and left_out(error)


def test_what_is_not_an_error_is_left_alone():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as info:
        cj.vmap(f)(X)
    assert "batching.py" in files(info.value) and len(frames(info.value)) == len(info.traceback)


class Frozen(Exception):
    """One that lets nothing be set."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


def test_an_exception_that_cannot_be_changed_arrives():
    def f(x):
        raise Frozen

    assert type(raised(lambda: cj.vmap(f)(X))) is Frozen


def test_an_error_in_a_user_function_does_not_break_what_follows():
    for _ in range(3):
        raised(NESTS["jit of vmap of grad"])
    np.testing.assert_allclose(cj.jit(cj.vmap(cj.grad(lambda x: jnp.sum(x * x))))(X), 2 * X)


def nested(x):
    try:
        cj.vmap(layer)(x)
    except TypeError as error:
        raise ValueError("nested") from error


def test_quiet_tracebacks_say_in_a_note_that_frames_are_removed():
    with config.override(traceback_filtering="quiet_remove_frames"):
        error = raised(cj.jit(cj.vmap(layer)), X)
    assert "left out" not in "".join(traceback.format_exception(error))
    assert functions(error) == ["raised", "call", "layer"]
    (note,) = error.__notes__
    assert "without corejax's own frames" in note and "traceback_filtering" in note


def without_boundaries(error):
    """The names of functions in a traceback, without those of `api_boundary`, at which exceptions are filtered."""
    return [frame.name for frame in frames(error) if os.path.basename(frame.filename) != "tracebacks.py"]


@pytest.mark.parametrize("nest", [pytest.param("operator", marks=pytest.mark.engine), "jit of vmap of grad", "scan"])
def test_remove_frames_keeps_the_whole_traceback_in_the_cause(nest):
    with config.override(traceback_filtering="remove_frames"):
        error = raised(NESTS[nest])
    with config.override(traceback_filtering="off"):
        whole = raised(NESTS[nest])
    assert files(error) == {"test_tracebacks.py"} and error.__cause__.__cause__ is None
    assert isinstance(error.__cause__, cj.errors.UnfilteredStackTrace)
    named = without_boundaries(error.__cause__)
    assert without_boundaries(whole)[-len(named) :] == named
    assert len(named) > len(frames(error)) and str(error) in str(error.__cause__)


def test_remove_frames_keeps_the_users_cause():
    with config.override(traceback_filtering="remove_frames"):
        error = raised(cj.jit(nested), X)
    assert isinstance(error.__cause__, cj.errors.UnfilteredStackTrace)
    assert isinstance(error.__cause__.__cause__, TypeError)


def test_frames_are_marked_for_tools_that_hide_them():
    with config.override(traceback_filtering="tracebackhide"):
        error = raised(layer, X)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shown = [f.f_code.co_name for f in frames if "__tracebackhide__" not in f.f_locals]
    assert shown == ["raised", "call", "layer"]
    assert len(frames) > len(shown)
