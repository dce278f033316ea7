"""`custom_jvp_call`: a program with a custom JVP rule.

    custom_jvp_call : a -> b        given a program a -> b and a rule (a, T a) -> (b, T b)

The rule is a Python function that runs when the equation is differentiated. The first `num_consts` operands are
values that the program closes over; the rule does not take them, so they must have no tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    instantiate,
    jaxpr_as_fun,
    jvp_rules,
    move_batch_axis,
    spread_list,
)
from corejax.extend.transforms import batch_flat
from corejax_control_flow.custom.closed_over import explain, refuse_closed_over, refuse_closed_over_results
from corejax_control_flow.custom.open_calls import BatchedCall, BatchedRule, boxed, call_primitive
from corejax_control_flow.custom.symbolic_zeros import with_types


class JvpRule(Protocol):
    """The type of the parameter `jvp`."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return results and their tangents. Zero tangents are None, among the arguments and the results."""


class BatchedJvp(BatchedRule):
    """A batched rule; all results and their tangents are batched along axis 0."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return batched results and tangents."""
        nonzeros = [t is not None for t in tangents]
        nonzeros_out: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            ts = spread_list(nonzeros, args[len(primals) :])
            outs, tangents_out = self.rule.jvp(args[: len(primals)], ts)
            nonzeros_out.extend(t is not None for t in tangents_out)
            return [*outs, *(t for t in tangents_out if t is not None)]

        dims = [*self.dims, *(d for d, nz in zip(self.dims, nonzeros, strict=True) if nz)]
        values = [*primals, *(t for t in tangents if t is not None)]
        outs, dims_out = batch_flat(flat, self.axis_size, values, dims)
        moved = [move_batch_axis(self.axis_size, d, 0, x) for x, d in zip(outs, dims_out, strict=True)]
        count = len(nonzeros_out)
        return moved[:count], spread_list(nonzeros_out, moved[count:])


class FlatFunction(NamedTuple):
    """A function of flat arguments, with the attributes that libraries for JAX read."""

    f: Callable[..., list[Any]]
    debug_info: Any = None

    def call_wrapped(self, *flat: Any) -> list[Any]:
        """Call the function."""
        return self.f(*flat)


class Subfunctions(tuple[FlatFunction, FlatFunction]):
    """The program and the JVP rule of an equation; the rule takes primals and tangents of all operands."""

    __slots__ = ()


class CustomJvpCall(Primitive):
    """The class of `custom_jvp_call`; its `get_bind_params` adds the functions that libraries for JAX call."""

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of an equation, and as `subfuns` the program and the rule as functions."""

        def rule(*flat: Any) -> list[Any]:
            count, first = len(flat) // 2, params["num_consts"]
            outs, tangents = params["jvp"].jvp(flat[first:count], flat[count + first :])
            return [*outs, *map(instantiate, tangents, outs)]

        program = FlatFunction(jaxpr_as_fun(params["call_jaxpr"]))
        return {**params, "subfuns": Subfunctions((program, FlatFunction(rule)))}

    def bind(self, *args: object, **params: object) -> Any:
        """Apply the primitive to parameters of an equation or of `get_bind_params`.

        Raises:
            TypeError: `subfuns` are functions that did not come from `get_bind_params`.
        """
        subfuns = params.pop("subfuns", None)
        if subfuns is not None and type(subfuns) is not Subfunctions:
            raise TypeError(
                "custom_jvp_call: the parameter 'subfuns' must come from get_bind_params; to call other functions, use "
                "corejax.custom_jvp"
            )
        return super().bind(*args, **params)


custom_jvp_call_p = call_primitive(
    "custom_jvp_call",
    "jvp",
    BatchedJvp,
    CustomJvpCall,
    tags=("higher_order",),
    doc="Call a program that has a custom JVP rule. Params: call_jaxpr, jvp, name, num_consts, symbolic_zeros.",
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
    """Run the user's rule now."""
    refuse_closed_over("custom_jvp", name, tangents[:num_consts])
    try:
        outs, tangents_out = jvp.jvp(primals[num_consts:], tangents[num_consts:])
    except Exception as error:
        explain(error, "custom_jvp", name)
        raise
    refuse_closed_over_results("custom_jvp", name, [*outs, *tangents_out])
    return (outs if call_jaxpr is None else with_types(outs, call_jaxpr.out_avals)), tangents_out


class BatchedJvpCall(BatchedCall):
    """An open call of a `custom_jvp` function, below a batching trace."""

    batched_rule = BatchedJvp

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run the rule under the batching trace; a result and its tangent get the same batch dim."""
        trace, size = self.trace, self.trace.axis_size
        tangent_dims = [None if t is None else d for t, d in zip(tangents, self.dims_in, strict=True)]
        batches = (boxed(trace, primals, self.dims_in), boxed(trace, tangents, tangent_dims))
        jvp = self.inner.jvp  # type: ignore[attr-defined]  # the inner call is of a `custom_jvp` function, too
        outs, tangents_out = self.on_trace(jvp, *batches)
        pairs = [_match_dims(size, *trace.unbox(x), *trace.unbox(t)) for x, t in zip(outs, tangents_out, strict=True)]
        self.dims_out = [d for _, _, d in pairs]
        return [x for x, _, _ in pairs], [t for _, t, _ in pairs]


def _match_dims(size: int, x: Any, x_dim: int | None, t: Any, t_dim: int | None) -> tuple[Any, Any, int | None]:
    """Batch a value and its tangent (None for zero) along the same axis."""
    if t is None or x_dim == t_dim:
        return x, t, x_dim
    if x_dim is None:
        assert t_dim is not None
        return move_batch_axis(size, None, t_dim, x), t, t_dim
    return x, move_batch_axis(size, t_dim, x_dim, t), x_dim
