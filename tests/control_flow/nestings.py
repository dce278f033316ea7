"""Programs and transformations that the control-flow tests put together, in corejax and in jax alike.

A program takes a namespace (`corejax.lax` or `jax.lax`) and `jit`, and gives a function f32[3] -> f32[3].
"""

from __future__ import annotations

import numpy as np

W = np.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [-0.2, 0.3, 0.7]], np.float32)
XS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def total(lax, x):
    return x.sum()


def matvec(lax, w, x):
    return lax.dot_general(w, x, (((1,), (0,)), ((), ())))


def cond_two(lax, jit):
    return lambda x: lax.cond(total(lax, x) > 0.5, lambda y: lax.sin(y) * y, lambda y: y * 2.0, x)


def cond_closure(lax, jit):
    def f(x):
        scale = lax.exp(x)
        return lax.cond(x[0] > 0.0, lambda: scale * x, lambda: lax.cos(x) - scale * scale)

    return f


def cond_five(lax, jit):
    return lambda x: lax.cond(x[0] > x[1], x * 3.0, lambda y: y * y, (x, 1.5), lambda y: lax.sin(y[0]) * y[1])


def cond_nothing_to_do(lax, jit):
    return lambda x: lax.cond(x[0] > 0.0, lambda y: y, lambda y: y * 0.0 + 2.0, x)


def switch_three(lax, jit):
    def f(x):
        index = lax.convert_element_type(x[0] * 3.0, np.int32)
        return lax.switch(index, [lambda y: y * y, lambda y: lax.tanh(y) * W[0], lambda y: lax.exp(y) * y[1]], x)

    return f


def scan_rnn(lax, jit):
    def f(x):
        def step(h, a):
            h = lax.tanh(matvec(lax, W, h) + a * x)
            return h, h * 2.0

        last, hs = lax.scan(step, x, XS)
        return last + hs[1] * hs[2]

    return f


def scan_products(lax, jit):
    def f(x):
        def step(carry, a):
            p, n = carry
            return (p * lax.sin(a * x), n + 1), p

        (p, n), ps = lax.scan(step, (x, 0), XS, reverse=True, unroll=3)
        return p + ps[0] * lax.convert_element_type(n, np.float32)

    return f


def scan_without_arrays(lax, jit):
    return lambda x: lax.scan(lambda c, _: (lax.sin(c) * x + 0.1, None), x, None, length=5)[0]


def scan_late_carry(lax, jit):
    """What is in a carry moves on: tangents and batches reach the last one only after three iterations."""

    def f(x):
        def step(carry, a):
            p, q, r = carry
            return (x * x, p * a, q + 1.0), r

        zero = np.zeros(3, np.float32)
        (_, _, r), rs = lax.scan(step, (zero, zero, zero), XS)
        return r + rs[3]

    return f


def scan_empty(lax, jit):
    def f(x):
        last, ys = lax.scan(lambda c, a: (c * x, a * c), x * 2.0, XS[:0])
        return last + ys.sum(0)

    return f


def scan_in_cond_in_scan(lax, jit):
    def inner(h, a):
        return lax.scan(lambda c, b: (c * lax.cos(b + a), c), h, XS[:2])

    def f(x):
        def step(h, a):
            g = lax.cond(h[0] > 0.1, lambda: inner(h * x, a)[0], lambda: h + a * x)
            return g, h * h

        last, hs = lax.scan(step, x, XS)
        return last + hs[3]

    return f


def jit_in_scan_in_jit(lax, jit):
    @jit
    def cell(h, a):
        return lax.sin(h) * a + h

    def f(x):
        return jit(lambda y: lax.scan(lambda h, a: (cell(h, a * x), cell(a, h)), y, XS))(x)[1][2]

    return f


def cond_of_scans(lax, jit):
    def f(x):
        def run(w, y):
            return lax.scan(lambda h, a: (lax.tanh(h * w + a), None), y, XS)[0]

        return lax.cond(x[1] > 0.0, lambda y: run(x, y), lambda y: run(2.0, y) * x, x)

    return f


def fori_static(lax, jit):
    return lambda x: lax.fori_loop(1, 4, lambda i, c: lax.sin(c) * x + i * W[0], x)


def map_of_elements(lax, jit):
    def f(x):
        ys = lax.map(lambda a: lax.sin(a * x), XS)
        return ys[1] * ys[2]

    return f


def while_around_what_it_does_not_change(lax, jit):
    """Differentiable in reverse: tangents pass the loop by."""

    def f(x):
        body = lambda c: (c[0] + 1, c[1], c[2] * 2.0, c[3] + 0.5)
        _, y, z, s = lax.while_loop(lambda c: (c[0] < 3) & (c[2] < 5.0), body, (0, x, 1.0, lax.sin(x)))
        return y * z * s

    return f


PROGRAMS = [
    fori_static,
    map_of_elements,
    while_around_what_it_does_not_change,
    cond_two,
    cond_closure,
    cond_five,
    cond_nothing_to_do,
    switch_three,
    scan_rnn,
    scan_products,
    scan_without_arrays,
    scan_late_carry,
    scan_empty,
    scan_in_cond_in_scan,
    jit_in_scan_in_jit,
    cond_of_scans,
]


def while_until_large(lax, jit):
    return lambda x: lax.while_loop(lambda y: total(lax, y * y) < 9.0, lambda y: y * 1.5 + lax.sin(x), x)


def while_of_scans(lax, jit):
    def f(x):
        step = lambda h, a: (lax.tanh(h * x + a), h)
        body = lambda c: (c[0] + 1, lax.scan(step, c[1], XS)[0] + 0.5)
        return lax.while_loop(lambda c: (c[0] < 4) & (c[1][0] < 1.0), body, (0, x))[1]

    return f


def while_in_cond_in_scan(lax, jit):
    def f(x):
        def step(h, a):
            grow = lambda g: lax.while_loop(lambda y: total(lax, y * y) < 2.0, lambda y: y * 2.0 + a, g * x)
            return lax.cond(h[0] > 0.1, grow, lambda g: g + 0.3, h), h

        last, hs = lax.scan(step, x, XS)
        return last + hs[2]

    return f


def fori_of_traced_bounds(lax, jit):
    def f(x):
        n = lax.convert_element_type(x[0] * 4.0, np.int32)
        return lax.fori_loop(0, n, lambda i, c: c * x + i, lax.fori_loop(n, 3, lambda i, c: lax.sin(c) + x, x))

    return f


FORWARD_ONLY = [while_until_large, while_of_scans, while_in_cond_in_scan, fori_of_traced_bounds]
FORWARD = ("value", "jvp", "linearize", "jvp_jvp")

CT = np.array([0.3, -1.2, 0.7], np.float32)
DOT = np.array([1.0, 0.5, -0.25], np.float32)
BATCH = np.array([[0.9, -0.2, 0.4], [-0.5, 0.3, 0.8], [0.2, 0.6, -0.7], [0.7, 0.1, 0.3]], np.float32)


def scalar(f):
    return lambda x: (f(x) * CT).sum()


def pushed(api, f):
    return lambda x: api.jvp(f, (x,), (DOT,))


def hvp(api, f):
    return lambda x: api.jvp(api.grad(scalar(f)), (x,), (DOT,))[1]


def grad_of_grad(api, f, jit=lambda g: g):
    return jit(api.grad(lambda x: (api.grad(jit(scalar(f)))(x) * DOT).sum()))


# name -> (api, f) -> function of x
TRANSFORMS = {
    "value": lambda api, f: f,
    "jvp": pushed,
    "vjp": lambda api, f: lambda x: api.vjp(f, x)[1](CT + 0 * f(x)),
    "grad": lambda api, f: api.grad(scalar(f)),
    "linearize": lambda api, f: lambda x: api.linearize(f, x)[1](DOT),
    "hvp": hvp,
    "grad_grad": grad_of_grad,
    "jvp_jvp": lambda api, f: lambda x: api.jvp(lambda y: api.jvp(f, (y,), (DOT,))[1], (x,), (CT,)),
}
# The same with jit somewhere: name -> (transformation, name of what it equals)
JITTED = {
    "jit": (lambda api, f: api.jit(f), "value"),
    "jit_grad": (lambda api, f: api.jit(api.grad(scalar(f))), "grad"),
    "grad_jit": (lambda api, f: api.grad(api.jit(scalar(f))), "grad"),
    "jit_jvp": (lambda api, f: api.jit(pushed(api, f)), "jvp"),
    "jit_grad_grad": (lambda api, f: grad_of_grad(api, f, api.jit), "grad_grad"),
}
# On a batch: name -> (transformation, name of what each row of its result equals)
BATCHED = {
    "vmap": (lambda api, f: api.vmap(f), "value"),
    "vmap_grad": (lambda api, f: api.vmap(api.grad(scalar(f))), "grad"),
    "grad_vmap": (lambda api, f: api.grad(lambda x: (api.vmap(f)(x) * CT).sum()), "grad"),
    "jvp_vmap": (
        lambda api, f: lambda x: api.jvp(api.vmap(f), (x,), (np.broadcast_to(DOT, x.shape),)),
        "jvp",
    ),
    "vmap_hvp": (lambda api, f: api.vmap(hvp(api, f)), "hvp"),
    "vmap_jit": (lambda api, f: api.vmap(api.jit(f)), "value"),
    "jit_vmap": (lambda api, f: api.jit(api.vmap(f)), "value"),
    "jit_vmap_grad": (lambda api, f: api.jit(api.vmap(api.grad(scalar(f)))), "grad"),
    "jit_grad_vmap": (lambda api, f: api.jit(api.grad(lambda x: (api.vmap(f)(x) * CT).sum())), "grad"),
}


class PlainControlFlow:
    """`lax` with Python's own `if` and `for`: what the control-flow functions mean."""

    def __init__(self, lax):
        self.lax = lax

    def __getattr__(self, name):
        return getattr(self.lax, name)

    def cond(self, pred, *args):
        if callable(args[0]):
            return args[0](*args[2:]) if pred else args[1](*args[2:])
        return args[1](args[0]) if pred else args[3](args[2])

    def switch(self, index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    def while_loop(self, cond_fun, body_fun, val):
        while cond_fun(val):
            val = body_fun(val)
        return val

    def fori_loop(self, lower, upper, body, val):
        for i in range(int(lower), int(upper)):
            val = body(i, val)
        return val

    def map(self, f, xs):
        return [f(x) for x in xs]

    def scan(self, f, carry, xs, length=None, reverse=False, unroll=1):
        length = len(xs) if length is None else length
        order = range(length)[:: -1 if reverse else 1]
        ys = {}
        for i in order:
            carry, ys[i] = f(carry, None if xs is None else xs[i])
        if not ys:
            return carry, np.zeros((0, 3), np.float32)
        rows = [ys[i] for i in range(length)]
        return carry, rows  # the programs only index them
