"""Programs with custom rules, in corejax and in jax alike, and as the plain functions that they compute.

A program takes an `Api` and gives a function f32[3] -> f32[3]. Rules say what is true, so that a program under any
transformation equals the plain one; `test_custom_jvp.py` and its neighbours have rules that lie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corejax
from tests.control_flow.nestings import XS


class Api(NamedTuple):
    """What the programs use."""

    api: Any
    np: Any
    lax: Any


class Plain:
    """Custom functions without their rules."""

    def __init__(self, api: Any) -> None:
        self.jit = api.jit

    @staticmethod
    def checkpoint(fun):
        return fun

    @staticmethod
    def custom_jvp(fun):
        return _without_rules(fun)

    custom_vjp = custom_jvp


def _without_rules(fun):
    def plain(*args):
        return fun(*args)

    plain.defjvp = plain.defvjp = lambda *rules: None
    return plain


def sine_jvp(a: Api):
    f = a.api.custom_jvp(lambda x, y: a.np.sin(x) * y)
    f.defjvp(lambda p, t: (f(*p), a.np.cos(p[0]) * p[1] * t[0] + a.np.sin(p[0]) * t[1]))
    return f


def sine_vjp(a: Api):
    f = a.api.custom_vjp(lambda x, y: a.np.sin(x) * y)
    f.defvjp(lambda x, y: (a.np.sin(x) * y, (x, y)), lambda r, ct: (a.np.cos(r[0]) * r[1] * ct, a.np.sin(r[0]) * ct))
    return f


def alone(f, a: Api):
    return lambda x: f(x, x * 2.0)


def in_cond(f, a: Api):
    return lambda x: a.lax.cond(x[0] > 0.0, lambda y: f(y, y + 1.0), lambda y: y * y, x)


def in_scan(f, a: Api):
    return lambda x: a.lax.scan(lambda c, w: (f(c, w) + x, f(w, c)), x, XS)[0]


def in_scan_ys(f, a: Api):
    return lambda x: a.lax.scan(lambda c, w: (c * 0.5, f(c, w)), x, XS)[1][2]


def in_jit(f, a: Api):
    return lambda x: a.api.jit(lambda y: f(y, x))(x * 0.5)


def in_fori_loop(f, a: Api):
    return lambda x: a.lax.fori_loop(0, 3, lambda i, c: f(c, x) + 0.1 * i, x)


def in_checkpoint(f, a: Api):
    return lambda x: a.api.checkpoint(lambda y: f(a.np.sin(y), x) * y)(x)


def over_cond(make, a: Api):
    """A custom function whose body and rules have control flow."""

    def branch(x):
        return a.lax.cond(x[0] > 0.0, lambda y: a.np.sin(y), lambda y: y * y, x)

    def slope(x):
        return a.lax.cond(x[0] > 0.0, lambda y: a.np.cos(y), lambda y: 2.0 * y, x)

    return make(a, branch, slope)


def over_scan(make, a: Api):
    def power(x):
        return a.lax.scan(lambda c, _: (c * x, None), a.np.ones(3, np.float32), None, length=3)[0]

    return make(a, power, lambda x: 3.0 * x * x)


def over_custom(make, a: Api):
    inner = sine_jvp(a)
    return make(a, lambda x: inner(x, x), lambda x: inner(x, x) / x + x * a.np.cos(x))


def made_jvp(a: Api, fun, slope):
    f = a.api.custom_jvp(fun)
    f.defjvp(lambda p, t: (f(*p), slope(*p) * t[0]))
    return f


def made_vjp(a: Api, fun, slope):
    f = a.api.custom_vjp(fun)
    f.defvjp(lambda x: (fun(x), x), lambda x, ct: (slope(x) * ct,))
    return f


# Loops and checkpoints are of the same plugin, but may not be there yet.
OUTER = [alone, in_cond, in_scan, in_scan_ys, in_jit]
OUTER += [in_fori_loop] * hasattr(corejax.lax, "fori_loop") + [in_checkpoint] * hasattr(corejax, "checkpoint")
INNER = {"custom_jvp": sine_jvp, "custom_vjp": sine_vjp}
MADE = {"custom_jvp": made_jvp, "custom_vjp": made_vjp}
# (outer, inner) -> program
PROGRAMS = {
    (outer.__name__, kind): (lambda a, outer=outer, make=make: outer(make(a), a))
    for outer in OUTER
    for kind, make in INNER.items()
} | {
    (kind, outer.__name__): (lambda a, outer=outer, make=make: outer(make, a))
    for outer in (over_cond, over_scan, over_custom)
    for kind, make in MADE.items()
}
