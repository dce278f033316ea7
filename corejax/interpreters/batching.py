"""Vectorised batching: one batched application instead of many.

    vmap : (a -> b) -> (n a -> n b)

The function runs once, on tracers that show the type of one element and hold the batch. For each primitive with a
mapped operand, the vmap rule computes all results at once, usually by binding the primitive on operands with one more
axis. Invariants: a batch has an axis of `axis_size` at `batch_dim`; rules choose that position and move the axis only
if operands disagree. A value that is not mapped is not boxed, and its batching dimension in rules is `None`, so that
operations on it run once. `run_rule` checks the element types after each rule.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from corejax import tree
from corejax.arrays.array import as_array
from corejax.arrays.structural import structural
from corejax.base.lists import unzip_map
from corejax.base.restoring import Changed, run_within
from corejax.core.avals import Dims, FlatFun, Operands, Params, ShapedArray, avals_of, get_aval
from corejax.core.named_axes import MappedAxis, named_axes
from corejax.core.primitive import Primitive
from corejax.core.trace import Trace, Tracer, run_with_trace, state
from corejax.errors import MissingRuleError
from corejax.interpreters.checks import refuse_leaks
from corejax.interpreters.engine import engine
from corejax.ir.debug_info import Debug
from corejax.ir.jaxpr import used_axes
from corejax.rules import RuleFn, collective_rules, vmap_rules
from corejax.rules.abstract_eval import promised
from corejax.rules.run_rule import check_result, each_result, refuse_batch, run_rule
from corejax.settings.caches import clears_cache


class BatchTracer(Tracer):
    """A value with one more axis than its aval shows.

    Attributes:
        val: the batched value.
        batch_dim: position of the batching axis in it.
    """

    __slots__ = ("aval", "batch_dim", "val")

    def __init__(self, trace: Trace, val: object, batch_dim: int, aval: ShapedArray | None = None) -> None:
        self._trace = trace
        self.val = val
        self.batch_dim = batch_dim
        self.aval = mapped_aval(get_aval(val), batch_dim) if aval is None else aval

    def origin(self) -> str:
        """Return sentences that say which vmap made the value."""
        text = super().origin()
        return f"{text} The value differs along the mapped axis, so it is not one number." if text else ""

    def __repr__(self) -> str:
        return (
            f"BatchTracer({self.aval.str_short(short_dtypes=False)}, batched={self.val!r}, batch_dim={self.batch_dim})"
        )


class BatchTrace(Trace):
    """Applies vmap rules.

    Attributes:
        axis_size: length of the mapped axis.
        axis: the names of the mapped axis, or None.
        axis_name: its name for collectives, or None.
        replay: `Engine.replay` if the engine records the equations of rules above this parent, else None.
    """

    __slots__ = ("axis", "axis_size", "replay")

    interpreter = "vmap"

    def __init__(self, parent: Trace, axis_size: int, axis_name: object = None, debug: Debug = None) -> None:
        super().__init__(parent, debug)
        self.axis_size = axis_size
        self.axis = mapped_axis(axis_name)
        self.replay: Any = engine().replay if self.axis is None and engine().records(parent) else None

    @property
    def axis_name(self) -> Any:
        """The axis's name for collectives, or None."""
        return None if self.axis is None else self.axis.name

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[Any]:
        """Run the vmap rule one level down; if no operand is mapped, let the parent interpret the primitive."""
        vals, dims, is_mapped = [], [], False
        for x in args:
            if type(x) is BatchTracer and x._trace is self:
                vals.append(x.val)
                dims.append(x.batch_dim)
                is_mapped = True
            else:
                vals.append(x)
                dims.append(None)  # type: ignore[arg-type]  # dims may be None
        if not is_mapped and not self.is_named_by(primitive, params):
            return self.parent.process_primitive(primitive, args, params)
        run_rule = self.replay_rule if self.replay else self.run_rule
        return run_rule(primitive, args, vals, dims, params)

    def is_named_by(self, primitive: Primitive, params: Params) -> bool:
        """Whether an application uses the mapped axis by its name, as collectives do."""
        axis = self.axis
        return axis is not None and axis.name is not None and axis.name in used_axes(primitive, params)

    def run_rule(
        self, primitive: Primitive, args: Sequence[Any], vals: list[Any], dims: list[Any], params: Params
    ) -> list[Any]:
        """Run the rule on values and batching dimensions (or None), with the parent on top.

        Returns:
            The results, checked against the types of one element that abstract evaluation infers from `args`.
        """
        try:
            avals = tuple([x.aval for x in args])
        except AttributeError:  # convert NumPy arrays and numbers, so that operators in rules are corejax's
            vals = [as_array(x) for x in vals]
            avals = avals_of(args)
        operands = (self.axis_size, vals, dims)
        if self.axis is None and state.rule_axis is None:
            rule = vmap_rules.table.get(primitive) or vmap_rules.lookup(primitive)
            out, dim = run_rule(vmap_rules, primitive, rule, self.parent, operands, params, True)
        else:
            run = (vmap_rules, primitive, self._rule(primitive, params), self.parent, operands, params, True)
            out, dim = run_within((Changed(state, "rule_axis", self.axis),), run_rule, *run)
        types = promised(primitive, avals, params)
        if not primitive.multiple_results:
            return [self._boxed(primitive, out, dim, None if types is None else types[0])]
        return [self._boxed(primitive, *each) for each in each_result(vmap_rules, primitive, out, dim, types)]

    def _rule(self, primitive: Primitive, params: Params) -> RuleFn:
        """Return the collective rule of an application that uses the mapped axis by its name, else the vmap rule."""
        is_named = self.is_named_by(primitive, params)
        collective = collective_rules.get(primitive) if is_named else None
        if collective is not None:
            return functools.partial(collective, self.axis_name)
        rule = vmap_rules.table.get(primitive) or vmap_rules.lookup(primitive)
        if is_named:
            _refuse_loop(primitive, self.axis_name)
        return rule

    def replay_rule(
        self, primitive: Primitive, args: Operands, vals: list[Any], dims: list[Any], params: Params
    ) -> list[Any]:
        """Do as `run_rule`, but let the engine append the equations if it has recorded the rule for these types."""
        rule = vmap_rules.table.get(primitive)
        call = rule and self.replay(primitive, rule, self.parent, vals, (self.axis_size, *dims), params)
        if type(call) is list:
            val, (dim, aval) = call
            return [val if dim is None else BatchTracer(self, val, dim, aval)]
        outs = self.run_rule(primitive, args, vals, dims, params)
        if call is not None:
            val, dim = self.unbox(outs[0])
            call.learn((val,), (dim, getattr(outs[0], "aval", None)))
        return outs

    def _boxed(self, primitive: Primitive, out: Any, dim: Any, aval: ShapedArray | None) -> Any:
        """Check the element type of a result against `aval` (None if not known), and box the result if it is mapped."""
        if dim is None:
            if aval is not None and getattr(out, "aval", None) is not aval:
                check_result(vmap_rules, primitive, out, aval, ", the same for every element")
            return out
        try:  # the fast path, for batches with a cached element type
            full = out.aval
            if dim >= 0 and full.shape[dim] == self.axis_size and _elements[full, dim] is aval:
                return BatchTracer(self, out, dim, aval)
        except (AttributeError, IndexError, KeyError, TypeError):
            pass
        shape = getattr(out, "shape", ())
        if not isinstance(dim, int) or not 0 <= dim < len(shape) or shape[dim] != self.axis_size:
            refuse_batch(primitive, self.axis_size, out, dim)
        boxed = BatchTracer(self, out, dim)
        if boxed.aval is not aval and aval is not None:
            check_result(vmap_rules, primitive, boxed, aval, f", batched along axis {dim}")
        return boxed

    def unbox(self, x: object) -> tuple[Any, int | None]:
        """Return the value behind a tracer of this trace and its batching dimension; None for other values."""
        return (x.val, x.batch_dim) if type(x) is BatchTracer and x._trace is self else (x, None)


def _refuse_loop(primitive: Primitive, axis_name: object) -> None:
    """Raise MissingRuleError if the vmap rule is a derived loop: a collective needs all elements at once."""
    if primitive.decomposition is not None or vmap_rules.is_written(primitive):
        return
    if "collective" in primitive.tags:
        raise MissingRuleError(
            f"primitive {primitive.name!r} has no collective rule, and it is applied over the mapped axis "
            f"{axis_name!r}; register one with collective_rules, or give it a decomposition"
        )
    raise MissingRuleError(
        f"primitive {primitive.name!r} has no vmap rule, and a program in its parameters uses the mapped axis "
        f"{axis_name!r}; register one with vmap_rules (batch_jaxpr batches the program)"
    )


INHERITED: Any = object()


def mapped_axis(name: object) -> MappedAxis | None:
    """Return the `MappedAxis` for an argument `axis_name`; `INHERITED` means the axis of the running vmap rule."""
    if name is INHERITED:
        return state.rule_axis
    return name if name is None or type(name) is MappedAxis else MappedAxis(name)


def batch_flat(
    fun: FlatFun, axis_size: int, vals: Operands, dims: Dims, axis_name: object = INHERITED, debug: Debug = None
) -> tuple[list[Any], list[int | None]]:
    """Batch a flat function.

    Args:
        fun: `(*vals) -> sequence of values`, written for one element.
        axis_size: size n of the batch.
        vals: arrays; `vals[i]` has an axis of size n at `dims[i]`, unless that is None.
        dims: batching dimensions.
        axis_name: a name that collectives in `fun` may use, or a `MappedAxis`. The default is no name, or, in a vmap
            rule, the axis of that rule.
        debug: the user's function, for messages.

    Returns:
        The results and their batching dimensions (None: the result is the same for every element).
    """
    trace = BatchTrace(state.trace, axis_size, axis_name, debug)
    axis = trace.axis
    boxed = [x if d is None else BatchTracer(trace, as_array(x), d) for x, d in zip(vals, dims, strict=True)]
    if axis is None and state.rule_axis is None:
        outs = run_with_trace(trace, fun, boxed)
    else:
        axes = ((axis.name, axis_size),) if axis is not None and axis.name is not None else ()
        outs = run_within((named_axes(axes), Changed(state, "rule_axis", None)), run_with_trace, trace, fun, boxed)
    vals_out, dims_out = unzip_map(trace.unbox, outs)
    refuse_leaks(trace)
    return vals_out, dims_out


# -- helpers for rules -------------------------------------------------------------------------------------------


# Caches `mapped_aval`: types of elements by type of batch and axis. Each boxed result needs one.
_elements: dict[tuple[ShapedArray, int], ShapedArray] = {}
clears_cache(_elements.clear)


def mapped_aval(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """Return the type of one element of a batch: `aval` without the axis `dim`."""
    if dim is None:
        return aval
    element = _elements.get((aval, dim))
    if element is None:
        shape = aval.shape
        element = aval.update(shape[:dim] + shape[dim + 1 :])
        if aval.refinement is not None:
            element = element.refined(aval.refinement.without_axis(dim)[0])
        _elements[aval, dim] = element
    return element


def unmapped_aval(axis_size: int, dim: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of a batch: `aval` with an axis of `axis_size` at `dim`."""
    if dim is None:
        return aval
    shape = aval.shape
    batched = aval.update((*shape[:dim], axis_size, *shape[dim:]))
    if aval.refinement is None:
        return batched
    return batched.refined(aval.refinement.with_axis(dim, () if state.rule_axis is None else state.rule_axis.spmd))


def axis_of_operands(axis: MappedAxis | None, vals: Operands, dims: Dims) -> MappedAxis | None:
    """Return a mapped axis with the names that an operand's type attaches to it, unless it has such names already."""
    if axis is not None and axis.spmd:
        return axis
    for x, d in zip(vals, dims, strict=True):
        refinement = getattr(getattr(x, "aval", None), "refinement", None)
        if d is not None and refinement is not None and (names := refinement.without_axis(d)[1]):
            return MappedAxis(None if axis is None else axis.name, names)
    return axis


def move_batch_axis(axis_size: int, source: int | None, destination: int, x: object) -> Any:
    """Move the batching axis of `x` from `source` to `destination`; broadcast `x` if it is not mapped.

    Args:
        axis_size: size n of the batch.
        source: the current position of the batching axis, or None.
        destination: the position that it gets.
        x: an array of shape `s` with an axis of size n at `source`, or of shape `s` if `source` is None.

    Returns:
        An array of shape `s` with an axis of size n at `destination`.
    """
    if source is None:
        return structural.broadcast_axis(x, axis_size, destination)
    return x if source == destination else structural.move_axis(x, source, destination)


@vmap_rules.derivations.from_decomposition()
def _vmap_of_decomposition(primitive: Primitive, body: FlatFun) -> RuleFn:
    def rule(axis_size: int, vals: Operands, dims: Dims, /, **params: object) -> tuple[Any, Any]:
        outs, dims_out = batch_flat(functools.partial(body, **params), axis_size, vals, dims)
        return (outs, dims_out) if primitive.multiple_results else (outs[0], dims_out[0])

    return rule


tree.mark_leaf_types(BatchTracer)
