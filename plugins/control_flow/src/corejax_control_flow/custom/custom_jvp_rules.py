"""`custom_jvp_call`: a program with a JVP rule of its own.

    custom_jvp_call : a -> b        given a program a -> b and a rule (a, T a) -> (b, T b)

The rule is a Python function, run whenever the application is differentiated. The first `num_consts` operands are
what the program closes over; the rule does not take them, so they must have no tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from corejax.extend import ClosedJaxpr, jvp_rules, move_batch_axis, spread_list
from corejax.extend.transforms import batch_flat
from corejax_control_flow.custom.closed_over import explained, refuse_closed_over, refuse_closed_over_results
from corejax_control_flow.custom.open_calls import BatchedCall, BatchedRule, boxed, call_primitive
from corejax_control_flow.custom.symbolic_zeros import with_types


class JvpRule(Protocol):
    """What the parameter `jvp` holds."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and their tangents; None for zero ones, given and returned."""


class BatchedJvp(BatchedRule):
    """A rule on batches; all results and their tangents are batched along axis 0."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and tangents."""
        given = [t is not None for t in tangents]
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            ts = spread_list(given, args[len(primals) :])
            outs, tangents_out = self.rule.jvp(args[: len(primals)], ts)
            nonzeros_out.extend(t is not None for t in tangents_out)
            return [*outs, *(t for t in tangents_out if t is not None)]

        dims = [*self.dims, *(d for d, nz in zip(self.dims, given, strict=True) if nz)]
        values = [*primals, *(t for t in tangents if t is not None)]
        outs, dims_out = batch_flat(flat, self.axis_size, values, dims)
        moved = [move_batch_axis(self.axis_size, d, 0, x) for x, d in zip(outs, dims_out, strict=True)]
        count = len(nonzeros_out)
        return moved[:count], spread_list(nonzeros_out, moved[count:])


custom_jvp_call_p = call_primitive(
    "custom_jvp_call",
    "jvp",
    BatchedJvp,
    tags=("higher_order",),
    doc="Call a program that has a JVP rule of its own. Params: call_jaxpr, jvp, name, num_consts, symbolic_zeros.",
)


@jvp_rules.register(custom_jvp_call_p, symbolic_zeros=True)
def custom_jvp_call_jvp(
    primals: Any,
    tangents: Any,
    *,
    call_jaxpr: ClosedJaxpr | None,
    jvp: JvpRule,
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
) -> Any:
    """The user's rule, run here and now."""
    refuse_closed_over("custom_jvp", name, tangents[:num_consts])
    with explained("custom_jvp", name):
        outs, tangents_out = jvp.jvp(primals[num_consts:], tangents[num_consts:])
    refuse_closed_over_results("custom_jvp", name, [*outs, *tangents_out])
    return (outs if call_jaxpr is None else with_types(outs, call_jaxpr.out_avals)), tangents_out


class BatchedJvpCall(BatchedCall):
    """An open call below a batching trace."""

    batched_rule = BatchedJvp

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The rule, run by the batching trace; a result and its tangent are batched alike."""
        trace, size = self.trace, self.trace.axis_size
        real = [None if t is None else d for t, d in zip(tangents, self.dims_in, strict=True)]
        batches = (boxed(trace, primals, self.dims_in), boxed(trace, tangents, real))
        outs, tangents_out = self.on_trace(self.inner.jvp, *batches)  # type: ignore[attr-defined]
        pairs = [_alike(size, *trace.unbox(x), *trace.unbox(t)) for x, t in zip(outs, tangents_out, strict=True)]
        self.dims_out = [d for _, _, d in pairs]
        return [x for x, _, _ in pairs], [t for _, t, _ in pairs]


def _alike(size: int, x: Any, x_dim: int | None, t: Any, t_dim: int | None) -> tuple[Any, Any, int | None]:
    """A value and its tangent (None for zero) with one batching dimension."""
    if t is None or x_dim == t_dim:
        return x, t, x_dim
    if x_dim is None:
        return move_batch_axis(size, None, t_dim, x), t, t_dim  # type: ignore[arg-type]
    return x, move_batch_axis(size, t_dim, x_dim, t), x_dim
