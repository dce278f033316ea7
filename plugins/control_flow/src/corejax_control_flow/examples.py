"""Example applications of every primitive of the plugin, for checks of their rules (`corejax verify control_flow`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray, jvp_flat, stage_closed
from corejax_control_flow.branches.cond import cond, switch
from corejax_control_flow.checkpoint import policies
from corejax_control_flow.checkpoint.checkpoint import checkpoint
from corejax_control_flow.custom.composite import composite
from corejax_control_flow.custom.custom_jvp import custom_jvp
from corejax_control_flow.custom.custom_vjp import custom_vjp
from corejax_control_flow.custom.custom_vmap import custom_vmap
from corejax_control_flow.custom.linear_call import linear_call
from corejax_control_flow.loops.progress import ProgressBar
from corejax_control_flow.loops.scan import scan
from corejax_control_flow.loops.while_loop import while_loop
from corejax_control_flow.markers.name import checkpoint_name
from corejax_control_flow.solvers.custom_linear_solve import custom_linear_solve

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def of_type(*shape: int, dtype: Any = F32) -> ShapedArray:
    """Return the type of an operand, float32 by default."""
    return ShapedArray(shape, dtype)


def example(
    primitive: str, fun: Callable[..., list[Any]], *avals: ShapedArray, first: tuple[Any, ...] = (), **fields: Any
) -> Example:
    """Return an example from the first application of a primitive in a function's program.

    Args:
        primitive: name of the primitive.
        fun: function that applies the primitive.
        *avals: types of the function's arguments.
        first: values of the first operands of the application; the others are types only.
        **fields: other fields of the example.
    """
    eqn = next(e for e in stage_closed(fun, avals).jaxpr.eqns if e.primitive.name == primitive)
    return Example((*first, *(atom.aval for atom in eqn.invars[len(first) :])), eqn.params, **fields)


_REVERSE = "a loop of unknown length is not differentiated in reverse"
_NOT_IN_REVERSE = dict.fromkeys(("second_order", "transpose", "vjp", "pairs", "triples"), _REVERSE)


def scans() -> list[Example]:
    """Return scans: with a nonlinear body; reversed, with a constant; unrolled, with a linear body."""
    from corejax_lax_basic import lax

    def products(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c * lax.sin(x) + c, c * x), carry, xs))

    def recurrence(carry: Any, w: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (lax.sin(c * w) + x, c * c), carry, xs, reverse=True))

    def sums(carry: Any, xs: Any) -> list[Any]:
        return list(scan(lambda c, x: (c + x, c), carry, xs, unroll=2))

    return [
        example("scan", products, of_type(), of_type(4)),
        example("scan", recurrence, of_type(2), of_type(2), of_type(4, 2)),
        example("scan", sums, of_type(2), of_type(3, 2)),
    ]


def while_loops() -> list[Example]:
    """Return while loops with carries that grow, change places or are added to; one condition reads a constant."""
    from corejax_lax_basic import lax

    def counted(n: Any, x: Any, w: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (lax.add(c[0], 1), lax.sin(c[1] * w)), (n, x)))

    def grows(x: Any, limit: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], limit + 3.0), lambda c: (c[0] + 2.0, c[1] * c[0]), (x, x)))

    def moves_on(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 2), lambda c: (c[0] + 1, c[2], c[1] * c[2]), (n, x, y)))

    def adds(n: Any, x: Any, y: Any) -> list[Any]:
        return list(while_loop(lambda c: lax.lt(c[0], 3), lambda c: (c[0] + 1, c[1] + 1.5, c[2]), (n, x, y)))

    number = of_type(dtype=I32)
    return [
        example("while", counted, number, of_type(3), of_type(3), low=0, high=3, skip=_NOT_IN_REVERSE),
        example("while", grows, of_type(), of_type(), low=0.5, high=1.0, skip=_NOT_IN_REVERSE),
        # Tangents pass through `adds` unchanged, so it supports reverse mode.
        example("while", adds, number, of_type(3), of_type(2), low=0, high=3),
        example("while", moves_on, number, of_type(2), of_type(2), low=0, high=2, skip=_NOT_IN_REVERSE),
    ]


def reports() -> list[Example]:
    """Return reports of loops of known and of unknown length."""
    operands = (np.asarray(7, I32), np.asarray(True))
    skip = {"indices": "a batch has one bar, which shows the largest count of its elements"}
    return [Example(operands, {"bar": ProgressBar(every=3), "total": total}, skip=skip) for total in (10, None)]


def conditionals() -> list[Example]:
    """Return conditionals with two and three branches; in one, both branches return an operand."""
    from corejax_lax_basic import lax

    def choose(index: Any, x: Any, y: Any) -> list[Any]:
        return [cond(lax.gt(index, 0), lambda a, b: a * b, lambda a, b: lax.sin(a) + b, x, y)]

    def pass_on(index: Any, x: Any, y: Any) -> list[Any]:
        return list(cond(lax.gt(index, 0), lambda a, b: (a, a * b), lambda a, b: (a, b), x, y))

    def one_of_three(index: Any, x: Any, y: Any) -> list[Any]:
        return list(
            switch(index, [lambda a, b: (a * b, b), lambda a, b: (lax.sin(a), a), lambda a, b: (b, a * a)], x, y)
        )

    index = of_type(dtype=I32)
    return [
        *(
            example("cond", f, index, of_type(3), of_type(3), first=(np.asarray(k, I32),))
            for f in (choose, pass_on)
            for k in (0, 1)
        ),
        example("cond", one_of_three, index, of_type(2), of_type(2), low=(0, -2, -2), high=(2, 2, 2)),
    ]


def taken() -> list[Example]:
    """Return guards of scalars and of rows; all elements take the branch, so that the guard is the identity."""
    return [
        Example(
            [of_type(3, *row), np.ones(3, bool)],
            reference=lambda x, taken: x,
            skip={"transpose": "cotangents of elements that do not take the branch are 0, by definition"},
        )
        for row in ((), (2,))
    ]


def linear_solves() -> list[Example]:
    """Return linear solves with coefficients inside the programs, as independent operands would not match."""
    from corejax_lax_basic import lax

    def symmetric(b: Any) -> list[Any]:
        def matvec(x: Any) -> Any:
            return x * 2.0 + lax.rev(x, (0,)) * 0.5

        return [custom_linear_solve(matvec, b, lambda mv, b: (b * 2.0 - lax.rev(b, (0,)) * 0.5) / 3.75, symmetric=True)]

    def first_in_all(b: Any) -> list[Any]:
        def solve(matvec: Any, b: Any) -> Any:
            return (b - b[0] / 3.0) / 2.0

        def transpose_solve(vecmat: Any, b: Any) -> Any:
            return lax.concatenate([(b[:1] - b[1:].sum() / 2.0) / 3.0, b[1:] / 2.0], 0)

        return [custom_linear_solve(lambda x: x * 2.0 + x[0], b, solve, transpose_solve)]

    return [example("custom_linear_solve", fun, of_type(3)) for fun in (symmetric, first_in_all)]


def remat() -> list[Example]:
    """Return checkpointed functions with several policies, with an argument as output, and a linear one."""
    from corejax_lax_basic import lax

    def body(x: Any, y: Any) -> Any:
        return lax.sin(checkpoint_name(lax.sin(x) * y, "product")) * x

    def several(x: Any, y: Any) -> list[Any]:
        return list(checkpoint(lambda x, y: (x, body(x, y), lax.cos(y)))(x, y))

    wraps = (
        checkpoint(body),
        checkpoint(body, policy=policies.save_only_these_names("product")),
        checkpoint(body, policy=policies.everything_saveable, prevent_cse=False),
    )
    plain = [example("remat2", lambda x, y, f=f: [f(x, y)], of_type(3), of_type(3)) for f in wraps]
    linear = example("remat2", lambda x, y: [checkpoint(lambda x, y: x * 2.0 + y)(x, y)], of_type(3), of_type(3))
    return [*plain, example("remat2", several, of_type(2), of_type(2)), linear]


def names() -> list[Example]:
    """Return named values: a vector and a scalar."""
    return [Example([of_type(*shape)], {"name": "activation"}, reference=lambda x, name: x) for shape in ((3,), ())]


def barrier() -> list[Example]:
    """Return barriers with one operand, and with two of different shapes."""
    return [
        Example(operands, {}, reference=lambda *xs: list(xs))
        for operands in ([of_type(3)], [of_type(2, 2), of_type()], [of_type(0), of_type(2)])
    ]


def sink() -> list[Example]:
    """Return sinks: a vector that the compiler may drop, and a scalar that it keeps."""
    return [Example([of_type(*shape)], {"prevent_mlir_dce": kept}) for shape, kept in (((3,), False), ((), True))]


_OPAQUE = {"text": "rules are Python functions, which do not print as text that parses"}


def jvp_calls() -> list[Example]:
    """Return calls of `custom_jvp` functions: one with two results, one with a rule from `defjvps`."""
    from corejax_lax_basic import lax

    f = custom_jvp(lambda x, y: (lax.sin(x) * y, y * 2.0))

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        x, y = primals
        x_dot, y_dot = tangents
        return f(x, y), (lax.cos(x) * y * x_dot + lax.sin(x) * y_dot, y_dot * 2.0)

    g = custom_jvp(lambda x: lax.exp(x))
    g.defjvps(lambda t, out, x: t * out)
    name = "custom_jvp_call"
    return [
        example(name, lambda x, y: list(f(x, y)), of_type(3), of_type(3), skip=_OPAQUE),
        example(name, lambda x: [g(x)], of_type(2, 2), skip=_OPAQUE),
    ]


_REVERSE_ONLY = "a custom_vjp function has no forward mode, by design"


def vjp_calls() -> list[Example]:
    """Return a call of a `custom_vjp` function with two operands."""
    from corejax_lax_basic import lax

    f = custom_vjp(lambda x, y: lax.sin(x) * y)
    f.defvjp(
        lambda x, y: (lax.sin(x) * y, (lax.cos(x), lax.sin(x), y)),
        lambda res, ct: (res[0] * res[2] * ct, res[1] * ct),
    )
    fails = dict.fromkeys(
        ("untouched", "jvp", "linearity", "zeros", "linearize", "second_order", "vjp", "splits"), _REVERSE_ONLY
    )
    return [example("custom_vjp_call", lambda x, y: [f(x, y)], of_type(3), of_type(3), skip=_OPAQUE, fails=fails)]


def forward_passes(primitive: str) -> list[Example]:
    """Return an example of `remat_opt` or `custom_lin`, which the jvp of a `custom_vjp` function binds."""
    from corejax_lax_basic import lax

    f = custom_vjp(lambda x, y: lax.sin(x) * y)
    f.defvjp(
        lambda x, y: (lax.sin(x) * y, (lax.cos(x), y)), lambda res, ct: (res[0] * res[1] * ct, ct), optimize_remat=True
    )

    def pushed(x: Any, y: Any) -> list[Any]:
        outs, tangents = jvp_flat(lambda x: [f(x, y)], [x], [y])
        return [*outs, *tangents]

    if primitive == "remat_opt":
        return [example(primitive, pushed, of_type(3), of_type(3))]
    unevaluated = dict.fromkeys(_EVALUATES, _REVERSE_ONLY)
    return [example(primitive, pushed, of_type(3), of_type(3), skip=_OPAQUE, fails=unevaluated)]


# The checks that evaluate `custom_lin`, which supports only transposition.
_EVALUATES = (
    *(
        "types",
        "pure",
        "programs",
        "jvp",
        "linearity",
        "zeros",
        "repeatable",
        "untouched",
        "zero_size",
        "cost",
        "linearize",
        "second_order",
        "transpose",
        "vjp",
        "vmap",
    ),
    *("nested_vmap", "partial_eval", "splits", "xla", "stablehlo", "pairs", "triples", "sharded"),
    "jax",
)


def vmap_calls() -> list[Example]:
    """Return calls of `custom_vmap` functions with rules that compute the same in another order."""
    from corejax_lax_basic import lax

    f = custom_vmap(lambda x, y: lax.sin(x) * y)
    f.def_vmap(lambda size, batched, x, y: (y * lax.sin(x), any(batched)))
    both = custom_vmap(lambda x: lax.sin(x))
    both.def_vmap(lambda size, batched, x: (lax.sin(x), batched[0]))
    name = "custom_vmap_call"
    return [
        example(name, lambda x, y: [f(x, y)], of_type(), of_type(), skip=_OPAQUE),
        example(name, lambda x: [both(x)], of_type(3), skip=_OPAQUE),
    ]


def linear_calls() -> list[Example]:
    """Return a call of a linear function."""

    def scaled(r: Any, x: Any) -> list[Any]:
        return [linear_call(lambda r, x: x * r, lambda r, ct: ct * r, r, x)]

    return [example("linear_call", scaled, of_type(3), of_type(3))]


def composites() -> list[Example]:
    """Return composites: one with an attribute, one with two results."""
    from corejax_lax_basic import lax

    tame = composite(lambda x, *, scale: lax.tanh(x) * scale, "acme.tame", 2)
    both = composite(lambda x, y: (x * y, x + y), "acme.both")
    return [
        example("composite", lambda x: [tame(x, scale=0.5)], of_type(3)),
        example("composite", lambda x, y: list(both(x, y)), of_type(2, 2), of_type(2, 2)),
    ]


_MAKERS: dict[str, Callable[[], list[Example]]] = {
    "composite": composites,
    "cond": conditionals,
    "custom_jvp_call": jvp_calls,
    "custom_lin": lambda: forward_passes("custom_lin"),
    "custom_linear_solve": linear_solves,
    "custom_vjp_call": vjp_calls,
    "custom_vmap_call": vmap_calls,
    "dce_sink": sink,
    "if_taken": taken,
    "linear_call": linear_calls,
    "name": names,
    "optimization_barrier": barrier,
    "progress": reports,
    "progress_report": reports,
    "remat2": remat,
    "remat_opt": lambda: forward_passes("remat_opt"),
    "scan": scans,
    "while": while_loops,
}


def examples_of(primitive: str) -> list[Example]:
    """Return the examples of one primitive, or an empty list if the plugin does not define it."""
    return _MAKERS[primitive]() if primitive in _MAKERS else []
