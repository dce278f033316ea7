"""Run a corejax program as one operation of PyTorch.

Eagerly it is an `autograd.Function`. Its backward, jvp and vmap are calls of the transformed program, so that
`backward`, `torch.func` and forward mode nest to any order. The Function returns residuals beside the results, so that
a derivative does not compute the program again, and derivatives of derivatives pass through the residuals.

Dynamo cannot trace a Function that defines jvp, so it traces the operator of `operators.py`. These Functions are the
derivatives of the operator too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
from torch.autograd import forward_ad

from corejax.extend import ClosedJaxpr, batch_jaxpr, dtypes, spread_list
from corejax.extend.programs import select_list
from corejax_to_torch.keys import key_of, name_of
from corejax_to_torch.programs import Flags, gradients, linearised, recomputed_gradients, residuals_of, tangents
from corejax_to_torch.tensors import has_derivatives, is_traced, outside_dynamo, require_dense, to_array, torch_dtype
from corejax_xla_backend.hlo import host_function

Run = Callable[[ClosedJaxpr, Sequence[Any]], list[torch.Tensor]]

_functorch = torch._C._functorch


# -- without derivatives -----------------------------------------------------------------------------------------------


def run(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a program on tensors. The results have memory of their own, as those of XLA always do.

    While PyTorch's compiler traces, it records the operator `corejax::call`.

    Raises:
        NotImplementedError: a tensor is not on the CPU.
        TypeError: a tensor is sparse.
    """
    for x in xs:
        require_dense(x, name_of(closed))
    if any(x.is_meta for x in xs):
        return empty_results(closed, xs)
    if not all(x.is_cpu for x in xs):
        device = next(x.device for x in xs if not x.is_cpu)
        raise NotImplementedError(
            f"to_torch: {name_of(closed)} is a kernel of corejax, which takes tensors on the CPU, and got one on "
            f"{device}; move it with Tensor.cpu()"
        )
    if is_traced(xs):
        with torch._C._AutoDispatchBelowAutograd():
            return list(torch.ops.corejax.call(list(xs), key_of(closed)))
    return _compiled(closed)([to_array(x) for x in xs])


def _compiled(closed: ClosedJaxpr) -> Callable[[Sequence[Any]], list[torch.Tensor]]:
    """Return the compiled program as a function from NumPy arrays to tensors, memoised."""
    compiled: Callable[[Sequence[Any]], list[torch.Tensor]] | None = closed.memo.get("to_torch.compiled")
    if compiled is None:
        compiled = host_function(lambda avals: checked(closed), name_of(closed), torch._C._from_dlpack)
        closed.memo["to_torch.compiled"] = compiled
    return compiled


def checked(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the program.

    Raises:
        TypeError: PyTorch does not have the dtype of a result.
    """
    for aval in closed.out_avals:
        torch_dtype(aval, name_of(closed))
    return closed


def empty_results(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return uninitialised tensors of the results' types."""
    device = xs[0].device if xs else "cpu"
    name = name_of(closed)
    return [torch.empty(a.shape, dtype=torch_dtype(a, name), device=device) for a in closed.out_avals]


# -- with derivatives --------------------------------------------------------------------------------------------------


def apply(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Call a program with tensors, in a way that PyTorch can differentiate and batch."""
    forward = forward_ad._current_level >= 0
    level = _functorch.maybe_current_level()
    if level is None and not forward:
        if not (torch.is_grad_enabled() and any(x.requires_grad for x in xs)):
            return run(closed, xs)
        nonzeros = tuple([x.requires_grad for x in xs])
        return list(PlainCall.apply(closed, nonzeros, *xs))[: len(closed.out_avals)]
    nonzeros = tuple([has_derivatives(x) and _is_moving(x) for x in xs])
    if not any(nonzeros) and level is None:
        return run(closed, xs)
    return list(Call.apply(closed, nonzeros, *xs))[: len(closed.out_avals)]


def _is_moving(x: Any) -> bool:
    """Return whether a derivative is taken with respect to a tensor, at any level of `torch.func`."""
    level = _functorch.peek_interpreter_stack()
    has_tangents = level is None or level.key() == _functorch.TransformType.Jvp
    if x.requires_grad or (has_tangents and forward_ad.unpack_dual(x).tangent is not None):
        return True
    if level is None:
        return False
    with temporarily_pop_interpreter_stack():  # a level sees no tangents of those around it
        return _is_moving(_functorch.get_unwrapped(x) if _functorch.maybe_get_level(x) == level.level() else x)


class Call(torch.autograd.Function):
    """A call of a program inside `torch.func` or forward mode. The outputs are the results, then residuals."""

    @staticmethod
    def forward(closed: ClosedJaxpr, nonzeros: Flags, *xs: Any) -> Any:
        """Compute the results and residuals."""
        return tuple(run(linearised(closed, nonzeros).known, xs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, outputs: Any) -> None:
        """Save the arguments and outputs for the derivatives."""
        closed, nonzeros, *xs = inputs
        _save(ctx, closed, nonzeros, xs, outputs)
        ctx.save_for_forward(*xs, *outputs)

    @staticmethod
    @outside_dynamo
    def backward(ctx: Any, *cts_out: Any) -> Any:
        """Pull cotangents back; residuals have cotangents only in a derivative of a derivative."""
        xs, outs = _saved(ctx)
        return None, None, *pull_back(apply, ctx.closed, ctx.nonzeros, xs, outs, cts_out)

    @staticmethod
    def jvp(ctx: Any, _closed: Any, _nonzeros: Any, *ts: Any) -> Any:
        """Push tangents forward to the results and residuals."""
        xs, _ = _saved(ctx)
        known = linearised(ctx.closed, ctx.nonzeros).known
        nonzeros = tuple([t is not None and has_derivatives(x) for t, x in zip(ts, xs, strict=True)])
        if not any(nonzeros):
            return tuple([None] * len(known.out_avals))
        split = linearised(known, nonzeros)
        residuals = residuals_of(split, xs, apply(split.known, xs))
        ts_out = apply(tangents(known, nonzeros), [*residuals, *select_list(nonzeros, ts)])
        smooth = [bool(dtypes.is_inexact(a.dtype)) for a in known.out_avals]
        return tuple(spread_list(smooth, ts_out))

    @staticmethod
    def vmap(info: Any, in_dims: Any, closed: ClosedJaxpr, nonzeros: Flags, *xs: Any) -> Any:
        """Call the batched program."""
        known = linearised(closed, nonzeros).known
        batched, _ = batch_jaxpr(known, info.batch_size, list(in_dims[2:]), True)
        outs = tuple(apply(batched, xs))
        return outs, tuple([0] * len(outs))


class PlainCall(torch.autograd.Function):
    """A call of a program outside of `torch.func`: `Call` without the binding of arguments that PyTorch adds to it."""

    @staticmethod
    def forward(ctx: Any, closed: ClosedJaxpr, nonzeros: Flags, *xs: Any) -> Any:
        """Compute the results and residuals, and save them."""
        outs = tuple(run(linearised(closed, nonzeros).known, xs))
        _save(ctx, closed, nonzeros, xs, outs)
        return outs

    backward = Call.backward


def _save(ctx: Any, closed: ClosedJaxpr, nonzeros: Flags, xs: Sequence[Any], outs: Sequence[Any]) -> None:
    ctx.closed, ctx.nonzeros, ctx.count = closed, nonzeros, len(xs)
    ctx.save_for_backward(*xs, *outs)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*[y for y in outs if not has_derivatives(y)])


def _saved(ctx: Any) -> tuple[list[Any], list[Any]]:
    """Return the saved arguments and outputs, without the wrappers of transformations that have ended since."""
    saved = [_functorch.unwrap_if_dead(x) for x in ctx.saved_tensors]
    return saved[: ctx.count], saved[ctx.count :]


def pull_back(
    call: Run, closed: ClosedJaxpr, nonzeros: Flags, xs: Sequence[Any], outs: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Return the arguments' cotangents.

    The residuals are among the outputs, if the forward call has returned them and no derivative of a derivative is
    taken; otherwise the program computes them again.

    Args:
        call: calls a program.
        closed: the program of the forward call.
        nonzeros: whether each argument has a cotangent.
        xs: the arguments.
        outs: the results, with residuals or without.
        cts: the cotangents of `outs`; None for zeros.
    """
    cts = [ct if has_derivatives(y) else None for ct, y in zip(cts, outs, strict=True)]
    given = [ct for ct in cts if ct is not None]
    if not given or not any(nonzeros):
        return [None] * len(xs)
    split = linearised(closed, nonzeros)
    count = len(closed.out_avals)
    with_residuals = len(outs) == len(split.known.out_avals)
    if with_residuals and all(ct is None for ct in cts[count:]):
        program = gradients(closed, nonzeros, tuple([ct is not None for ct in cts[:count]]))
        operands = residuals_of(split, xs, outs)
    else:
        has_ct = tuple([ct is not None for ct in cts])
        program = recomputed_gradients(split.known if with_residuals else closed, nonzeros, has_ct)
        operands = list(xs)
    return spread_list(nonzeros, call(program, [*operands, *given]))
