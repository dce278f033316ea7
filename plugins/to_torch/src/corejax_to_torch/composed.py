"""Run a corejax program as operations of PyTorch, equation by equation.

If PyTorch has no operation for an equation, the equation is decomposed, or runs as a kernel (`kernel.py`). A primitive
with both a decomposition and a JVP rule of its own runs as a kernel, because PyTorch would differentiate the
decomposition and ignore the rule.

Under `torch.compile` the program is the operator `corejax::composed`, which has no kernel: PyTorch decomposes it before
it differentiates, batches or compiles.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from corejax.extend import ClosedJaxpr, JaxprEqn, decomposed, host_value, jvp_rules, memoised, stage_closed
from corejax.extend.programs import Literal, subjaxprs
from corejax_to_torch import kernel, keys
from corejax_to_torch.aten import operation
from corejax_to_torch.tensors import aval_of, constant, is_traced

# Primitives that only run their single program.
_TRANSPARENT = frozenset({"xla_call", "remat2", "closed_call"})

Step = tuple[Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]], list[Any], list[Any]]


def apply(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Call a program with tensors. No result is an argument itself; as in PyTorch, it may be a view of one."""
    outs = evaluate(closed, xs)
    return [out.clone() if any(out is x for x in xs) else out for out in outs]


def evaluate(closed: ClosedJaxpr, xs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a program's equations."""
    steps = closed.memo.get("to_torch.steps")
    if steps is None:
        steps = closed.memo["to_torch.steps"] = [
            (_step(eqn), [_reader(v) for v in eqn.invars], list(eqn.outvars)) for eqn in closed.jaxpr.eqns
        ]
    jaxpr = closed.jaxpr
    device = xs[0].device if xs else "cpu"
    traced = is_traced(xs)
    env: dict[Any, torch.Tensor] = dict(zip(jaxpr.invars, xs, strict=True))

    def read(v: Any) -> torch.Tensor:
        return constant(v, traced).to(device) if isinstance(v, np.ndarray) else env[v]

    exports = traced and torch.compiler.is_exporting()
    for i, (v, c) in enumerate(zip(jaxpr.constvars, closed.consts, strict=True)):
        array = np.asarray(host_value(c))
        env[v] = _constant_of_kernel(closed, i).to(device) if exports and array.ndim else read(array)
    for step, invars, outvars in steps:
        env.update(zip(outvars, step([read(v) for v in invars]), strict=True))
    return [read(_reader(v)) for v in jaxpr.outvars]


def _constant_of_kernel(closed: ClosedJaxpr, index: int) -> torch.Tensor:
    """Return a constant of a program as the result of a kernel without operands.

    `ExportedProgram.run_decompositions` loses new tensors (pytorch/pytorch#164461).
    """
    key = ("to_torch.constant", index)
    program = memoised(closed, key, lambda: stage_closed(lambda: [closed.consts[index]], ()))
    outs: list[torch.Tensor] = torch.ops.corejax.call([], keys.key_of(program))
    return outs[0]


def _reader(v: Any) -> Any:
    """Return a variable, or the value of a literal as an array."""
    return np.asarray(host_value(v.val), v.aval.dtype) if isinstance(v, Literal) else v


def _step(eqn: JaxprEqn) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]:
    """Return the function of tensors that evaluates an equation."""
    primitive, avals = eqn.primitive, [v.aval for v in eqn.invars]
    aten = operation(primitive.name, avals, eqn.params)
    if aten is not None:
        return aten
    closed: ClosedJaxpr | None = None
    if primitive.decomposition is not None and not jvp_rules.is_written(primitive):
        closed = decomposed(primitive, avals, eqn.params)
    elif primitive.name in _TRANSPARENT:
        programs = list(subjaxprs(eqn.params))
        inner_program = programs[0] if len(programs) == 1 else None
        closed = inner_program if isinstance(inner_program, ClosedJaxpr) else None
    if closed is not None:
        inner = closed
        return lambda xs: evaluate(inner, xs)
    return functools.partial(_leaf, eqn, {})


def _leaf(eqn: JaxprEqn, memo: dict[Any, ClosedJaxpr], xs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Call an equation's primitive as a kernel; `memo` has its programs by types of operands."""
    primitive, params = eqn.primitive, eqn.params
    types = tuple([(x.dtype, *map(int, x.shape)) for x in xs])  # while PyTorch compiles, sizes may be symbolic
    closed = memo.get(types)
    if closed is None:
        avals = [aval_of(x, primitive.name) for x in xs]

        def flat(*operands: Any) -> list[Any]:
            out = primitive.bind(*operands, **params)
            return list(out) if primitive.multiple_results else [out]

        closed = memo[types] = stage_closed(flat, avals)
    return kernel.apply(closed, xs)


def _composed(xs: Sequence[torch.Tensor], key: str) -> list[torch.Tensor]:
    return apply(keys.staged(key, xs), xs)


_library = torch.library.Library("corejax", "FRAGMENT")
_library.define("composed(Tensor[] xs, str key) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))
_library.impl("composed", _composed, "CompositeImplicitAutograd")
_library.impl("composed", _composed, "FuncTorchDynamicLayerFrontMode")  # before torch.func decomposes the call

# `(xs, key) -> results`: calls the program of a key while PyTorch compiles.
operator: Any = torch.ops.corejax.composed.default
