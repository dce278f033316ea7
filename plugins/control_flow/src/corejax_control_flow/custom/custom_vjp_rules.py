"""`custom_vjp_call`: a program with custom rules for reverse mode, and `custom_lin`, its unevaluated derivative.

    custom_vjp_call : a -> b        given a program a -> b, fwd : a -> (b, res) and bwd : (res, CT b) -> CT a
    custom_lin : res -> T a -o T b

The jvp of `custom_vjp_call` runs the forward pass and binds `custom_lin` as a placeholder for the linear map of the
tangents. The placeholder can only be transposed, which runs the backward pass; evaluating it raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from corejax.extend import (
    ClosedJaxpr,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    config,
    dtypes,
    get_aval,
    impl_rules,
    instantiate,
    is_undef_primal,
    jvp_rules,
    move_batch_axis,
    split_list,
    spread_list,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.programs import select_list
from corejax.extend.transforms import as_tangent, batch_flat, structural, tangent_aval, unmapped_aval, zero_cotangent
from corejax_control_flow.custom.closed_over import explain, refuse_closed_over, refuse_closed_over_results
from corejax_control_flow.custom.open_calls import BatchedCall, BatchedRule, boxed, call_primitive, unboxed
from corejax_control_flow.custom.symbolic_zeros import with_types

custom_lin_p = Primitive(
    "custom_lin",
    multiple_results=True,
    tags=("higher_order",),
    doc="Stand for the derivative of a call that has rules for reverse mode only: it can be transposed, not evaluated. "
    "Params: avals_out, name, nonzeros, num_res, pullback.",
)


class Pullback(Protocol):
    """The type of the parameter `pullback` of `custom_lin`."""

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return cotangents of all operands from residuals and cotangents of the results, None for zero."""


class Forward(NamedTuple):
    """The result of a forward pass."""

    outs: list[Any]
    residuals: list[Any]
    pullback: Pullback


class VjpRule(Protocol):
    """The type of the parameter `vjp` of `custom_vjp_call`."""

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Run the forward pass."""


# -- custom_vjp_call -----------------------------------------------------------------------------------------


class BatchedVjp(BatchedRule):
    """A batched rule; all results of the forward pass are batched along axis 0."""

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Run the batched forward pass."""
        made: list[Forward] = []

        def flat(*args: Any) -> list[Any]:
            made.append(self.rule.fwd(args, perturbed))
            return [*made[0].outs, *made[0].residuals]

        values, dims = batch_flat(flat, self.axis_size, primals, self.dims)
        outs, residuals = split_list(values, [len(made[0].outs)])
        out_dims, res_dims = split_list(dims, [len(outs)])
        outs = [move_batch_axis(self.axis_size, d, 0, x) for x, d in zip(outs, out_dims, strict=True)]
        pullback = BatchedPullback(made[0].pullback, self.axis_size, res_dims, self.dims, [0] * len(outs))
        return Forward(outs, residuals, pullback)


custom_vjp_call_p = call_primitive(
    "custom_vjp_call",
    "vjp",
    BatchedVjp,
    tags=("higher_order", "reverse_only"),
    doc="Call a program that has custom rules for reverse mode. Params: call_jaxpr, name, num_consts, "
    "symbolic_zeros, vjp.",
)


@jvp_rules.register(custom_vjp_call_p, symbolic_zeros=True)
def custom_vjp_call_jvp(
    primals: Any,
    tangents: Any,
    *,
    call_jaxpr: ClosedJaxpr | None,
    vjp: VjpRule,
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
) -> Any:
    """Run the forward pass, and bind a placeholder for the derivative."""
    refuse_closed_over("custom_vjp", name, tangents[:num_consts])
    tangents = tangents[num_consts:]
    nonzeros = tuple(t is not None for t in tangents)
    try:
        outs, residuals, pullback = vjp.fwd(primals[num_consts:], nonzeros)
    except Exception as error:
        explain(error, "custom_vjp", name)
        raise
    refuse_closed_over_results("custom_vjp", name, [*outs, *residuals])
    if call_jaxpr is not None:
        outs = with_types(outs, call_jaxpr.out_avals)
    tangents_out = custom_lin_p.bind(
        *residuals,
        *select_list(nonzeros, tangents),
        avals_out=tuple(tangent_aval(get_aval(x)) for x in outs),
        name=name,
        nonzeros=nonzeros,
        num_res=len(residuals),
        pullback=pullback,
    )
    return outs, [t if dtypes.is_inexact(get_aval(t).dtype) else None for t in tangents_out]


# -- custom_lin ----------------------------------------------------------------------------------------------


def no_forward_mode(name: str) -> TypeError:
    """Return the error for evaluating or differentiating `custom_lin`."""
    return TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name} has a rule for reverse mode only, "
        "and jvp, jacfwd or a linearised function was applied to it. Use grad, vjp or jacrev, or give the function a "
        "JVP rule with custom_jvp, which serves both modes."
    )


@impl_rules.register(custom_lin_p)
def custom_lin_impl(*args: Any, name: str, **params: Any) -> list[Any]:
    """Raise TypeError, as the derivative cannot be evaluated."""
    raise no_forward_mode(name)


@abstract_eval_rules.register(custom_lin_p)
def custom_lin_abstract_eval(*avals: ShapedArray, avals_out: tuple[ShapedArray, ...], **params: Any) -> Any:
    """Return the tangent types of the results."""
    return avals_out


@jvp_rules.register(custom_lin_p, symbolic_zeros=True)
def custom_lin_jvp(primals: Any, tangents: Any, *, name: str, num_res: int, **params: Any) -> Any:
    """Apply the linear map to the tangents of its linear operands.

    Raises:
        TypeError: if a residual has a tangent, as the derivative with respect to residuals is not known.
    """
    if any(t is not None for t in tangents[:num_res]):
        raise no_forward_mode(name)
    params = {"name": name, "num_res": num_res, **params}
    tangents_in = [instantiate(t, x) for t, x in zip(tangents[num_res:], primals[num_res:], strict=True)]
    return custom_lin_p.bind(*primals, **params), custom_lin_p.bind(*primals[:num_res], *tangents_in, **params)


@vmap_rules.register(custom_lin_p)
def custom_lin_vmap(
    axis_size: int,
    vals: Any,
    dims: Any,
    *,
    avals_out: tuple[ShapedArray, ...],
    nonzeros: tuple[bool, ...],
    num_res: int,
    pullback: Pullback,
    **params: Any,
) -> Any:
    """Bind the derivative of the batch."""
    dims_in = spread_list(nonzeros, dims[num_res:])
    rule = BatchedPullback(pullback, axis_size, dims[:num_res], dims_in, [0] * len(avals_out))
    batched = tuple(unmapped_aval(axis_size, 0, a) for a in avals_out)
    outs = custom_lin_p.bind(*vals, avals_out=batched, nonzeros=nonzeros, num_res=num_res, pullback=rule, **params)
    return outs, [0] * len(outs)


@transpose_rules.register(custom_lin_p, symbolic_zeros=True)
def custom_lin_transpose(
    cts: Sequence[Any], *operands: Any, name: str, nonzeros: Any, num_res: int, pullback: Pullback, **params: Any
) -> list[Any]:
    """Run the user's backward pass now."""
    residuals, linear = split_list(operands, [num_res])
    if any(is_undef_primal(x) for x in residuals):
        raise no_forward_mode(name)
    try:
        cts_in = select_list(nonzeros, pullback.pull(residuals, cts))
    except Exception as error:
        explain(error, "custom_vjp", name)
        raise
    refuse_closed_over_results("custom_vjp", name, cts_in)
    avals = [x.aval if is_undef_primal(x) else get_aval(x) for x in linear]
    cts_in = [None if ct is None else as_tangent(ct, a) for ct, a in zip(cts_in, avals, strict=True)]
    if config.x64_compat:  # JAX goes on with zeros, so that backward passes further up run
        cts_in = [
            zero_cotangent(a) if ct is None and dtypes.is_inexact(a.dtype) else ct
            for ct, a in zip(cts_in, avals, strict=True)
        ]
    return [*(None for _ in residuals), *cts_in]


# -- batches -------------------------------------------------------------------------------------------------


class BatchedVjpCall(BatchedCall):
    """An open call of a `custom_vjp` function, below a batching trace."""

    batched_rule = BatchedVjp

    def fwd(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        """Run the forward pass under the batching trace."""
        batches = boxed(self.trace, primals, self.dims_in)
        fwd = self.inner.fwd  # type: ignore[attr-defined]  # the inner call is of a `custom_vjp` function, too
        made: Forward = self.on_trace(fwd, batches, perturbed)
        size = self.trace.axis_size
        outs, dims = unboxed(self.trace, made.outs)
        # An unbatched result may have a batched derivative, so every result is batched.
        outs = [x if d is not None else move_batch_axis(size, None, 0, x) for x, d in zip(outs, dims, strict=True)]
        self.dims_out = [d or 0 for d in dims]
        residuals, res_dims = unboxed(self.trace, made.residuals)
        pullback = BatchedPullback(made.pullback, size, res_dims, self.dims_in, self.dims_out)
        return Forward(outs, residuals, pullback)


class BatchedPullback:
    """A batched backward pass; cotangents of unbatched operands are summed over the batch."""

    def __init__(
        self,
        pullback: Pullback,
        axis_size: int,
        res_dims: Sequence[int | None],
        dims_in: Sequence[int | None],
        dims_out: Sequence[int | None],
    ) -> None:
        self.pullback = pullback
        self.axis_size = axis_size
        self.res_dims = list(res_dims)
        self.dims_in = list(dims_in)
        self.dims_out = list(dims_out)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return cotangents of the operands."""
        nonzeros_out = [ct is not None for ct in cts]
        nonzeros: list[bool] = []

        def flat(*args: Any) -> list[Any]:
            res, cts_out = split_list(args, [len(residuals)])
            cts_in = self.pullback.pull(res, spread_list(nonzeros_out, cts_out))
            nonzeros.extend(ct is not None for ct in cts_in)
            return [ct for ct in cts_in if ct is not None]

        dims = [*self.res_dims, *select_list(nonzeros_out, self.dims_out)]
        outs, dims_out = batch_flat(flat, self.axis_size, [*residuals, *select_list(nonzeros_out, cts)], dims)
        wanted = select_list(nonzeros, self.dims_in)
        cts_in = [_match_operand(self.axis_size, x, d, want) for x, d, want in zip(outs, dims_out, wanted, strict=True)]
        return spread_list(nonzeros, cts_in)


def _match_operand(axis_size: int, ct: Any, dim: int | None, wanted: int | None) -> Any:
    """Batch a cotangent along its operand's axis, or sum it over the batch if the operand is not batched."""
    if wanted is not None:
        return move_batch_axis(axis_size, dim, wanted, ct)
    from corejax_lax_basic import lax

    if dim is None:  # each element contributes the same cotangent to the sum
        dim, ct = 0, structural.broadcast_axis(ct, axis_size, 0)
    return lax.reduce_sum(ct, (dim,))
