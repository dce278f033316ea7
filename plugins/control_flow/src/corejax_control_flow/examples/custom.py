"""Applications of functions with rules of their own."""

from __future__ import annotations

from typing import Any

from corejax.extend import Example, jvp_flat
from corejax_control_flow.custom.composite import composite
from corejax_control_flow.custom.custom_jvp import custom_jvp
from corejax_control_flow.custom.custom_vjp import custom_vjp
from corejax_control_flow.custom.custom_vmap import custom_vmap
from corejax_control_flow.custom.linear_call import linear_call
from corejax_control_flow.examples._equations import example, of_type

_OPAQUE = {"text": "rules are Python functions, which do not print as text that parses"}


def jvp_calls() -> list[Example]:
    """Of `custom_jvp_call`: two results; a closed-over array, whose rule has no derivative."""
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
    """Of `custom_vjp_call`: two operands."""
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
    """Of `remat_opt` and `custom_lin`, which the forward pass of a `custom_vjp` function applies."""
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


# What evaluates the derivative of a call, which only transposition can make sense of.
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
)


def vmap_calls() -> list[Example]:
    """Of `custom_vmap_call`: the rule computes the same in another order."""
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
    """Of `linear_call`."""

    def scaled(r: Any, x: Any) -> list[Any]:
        return [linear_call(lambda r, x: x * r, lambda r, ct: ct * r, r, x)]

    return [example("linear_call", scaled, of_type(3), of_type(3))]


def composites() -> list[Example]:
    """Of `composite`: attributes, two results."""
    from corejax_lax_basic import lax

    tame = composite(lambda x, *, scale: lax.tanh(x) * scale, "acme.tame", 2)
    both = composite(lambda x, y: (x * y, x + y), "acme.both")
    return [
        example("composite", lambda x: [tame(x, scale=0.5)], of_type(3)),
        example("composite", lambda x, y: list(both(x, y)), of_type(2, 2), of_type(2, 2)),
    ]


EXAMPLES = {
    "composite": composites,
    "custom_jvp_call": jvp_calls,
    "custom_lin": lambda: forward_passes("custom_lin"),
    "custom_vjp_call": vjp_calls,
    "custom_vmap_call": vmap_calls,
    "linear_call": linear_calls,
    "remat_opt": lambda: forward_passes("remat_opt"),
}
