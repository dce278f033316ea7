"""Vectorised batching: one batched application instead of many.

    vmap : (a -> b) -> (n a -> n b)

A tracer holds a batch and the position of its batching axis. A value that is not mapped is not boxed; `None` is its
batching dimension in rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from corejax import tree
from corejax.base.restoring import Changed, run_within
from corejax.core.array import as_array
from corejax.core.avals import ShapedArray, avals_of, get_aval
from corejax.core.named_axes import MappedAxis, named_axes
from corejax.core.primitive import Primitive, flat_decomposition
from corejax.core.structural import structural
from corejax.core.trace import Trace, Tracer, run_with_trace, state
from corejax.errors import MissingRuleError
from corejax.interpreters.checks import refuse_leaks
from corejax.interpreters.engine import engine
from corejax.ir.jaxpr import used_axes
from corejax.rules import Derivation, collective_rules, vmap_rules
from corejax.rules.abstract_eval import promised
from corejax.rules.run_rule import check_result, each_result, refuse_batch, run_rule
from corejax.settings.caches import clears_cache

Result = tuple[Any, int | None, ShapedArray | None]  # a value, its batching dimension, the type of one element


class BatchTracer(Tracer):
    """A value with one more axis than its aval shows.

    Attributes:
        val: the batched value.
        batch_dim: position of the batching axis in it.
    """

    __slots__ = ("aval", "batch_dim", "val")

    def __init__(self, trace: Trace, val: Any, batch_dim: int, aval: ShapedArray | None = None) -> None:
        self._trace = trace
        self.val = val
        self.batch_dim = batch_dim
        self.aval = mapped_aval(get_aval(val), batch_dim) if aval is None else aval

    def origin(self) -> str:
        """Sentences that say which vmap made the value."""
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
        axis: its names, or None.
        axis_name: that for collectives, or None.
        replay: appends what a rule recorded before (`Engine.replay`), or None.
    """

    __slots__ = ("axis", "axis_size", "replay")

    interpreter = "vmap"

    def __init__(self, parent: Trace, axis_size: int, axis_name: Any = None, debug: Any = None) -> None:
        super().__init__(parent, debug)
        self.axis_size = axis_size
        self.axis = mapped_axis(axis_name)
        self.replay: Any = engine().replay if self.axis is None and engine().records(parent) else None

    @property
    def axis_name(self) -> Any:
        """The axis's name for collectives, or None."""
        return None if self.axis is None else self.axis.name

    def process_primitive(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the vmap rule one level down; without a mapped operand, just the primitive."""
        vals, dims, mapped = self.unzip(args)
        if not mapped and not self.is_named_by(primitive, params):
            return self.parent.process_primitive(primitive, args, params)  # type: ignore[union-attr]
        run_rule = self.replay_rule if self.replay and state.rule_axis is None else self.run_rule
        results = run_rule(primitive, args, vals, dims, params)
        return [x if dim is None else BatchTracer(self, x, dim, aval) for x, dim, aval in results]

    def unzip(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], bool]:
        """Return values, batching dimensions (or None), and whether there is any."""
        vals, dims, mapped = [], [], False
        for x in args:
            if type(x) is BatchTracer and x._trace is self:
                vals.append(x.val)
                dims.append(x.batch_dim)
                mapped = True
            else:
                vals.append(x)
                dims.append(None)  # type: ignore[arg-type]
        return vals, dims, mapped

    def is_named_by(self, primitive: Primitive, params: dict[str, Any]) -> bool:
        """Tell whether a primitive is over the mapped axis by its name."""
        axis = self.axis
        return axis is not None and axis.name is not None and axis.name in used_axes(primitive, params)

    def run_rule(
        self, primitive: Primitive, args: Sequence[Any], vals: list[Any], dims: list[Any], params: dict[str, Any]
    ) -> Sequence[Result]:
        """Run the rule with the parent on top.

        Args:
            primitive, args, params: the application; the types of one element are those of `args`.
            vals, dims: what `unzip` returns.

        Returns:
            Its results, their batching dimensions (or None), and the types of one element: checked to be those that
            abstract evaluation promises.
        """
        try:
            avals = tuple([x.aval for x in args])
        except AttributeError:  # a NumPy array, a number: rules get arrays, whose operators are corejax's
            vals = [as_array(x) for x in vals]
            avals = avals_of(args)
        named = self.is_named_by(primitive, params)
        collective = collective_rules.get(primitive) if named else None
        if collective is not None:
            rule: Any = functools.partial(collective, self.axis_name)
        else:
            rule = vmap_rules.table.get(primitive) or vmap_rules.lookup(primitive)
        operands = (self.axis_size, vals, dims)
        if self.axis is None and state.rule_axis is None:
            out, dim = run_rule(vmap_rules, primitive, rule, self.parent, operands, params, True)
        else:
            if named and collective is None:
                _refuse_loop(primitive, self.axis_name)
            run = (vmap_rules, primitive, rule, self.parent, operands, params, True)
            out, dim = run_within((Changed(state, "rule_axis", self.axis),), run_rule, *run)
        types = None if params else primitive._memo.get(avals)
        if types is None:
            types = promised(primitive, avals, params)
        if not primitive.multiple_results:
            return (self._checked(primitive, out, dim, None if types is None else types[0]),)
        return [self._checked(primitive, *each) for each in each_result(vmap_rules, primitive, out, dim, types)]

    def replay_rule(
        self, primitive: Primitive, args: Sequence[Any], vals: list[Any], dims: list[Any], params: dict[str, Any]
    ) -> Sequence[Result]:
        """Do as `run_rule`, by the engine if it knows what the rule records for operands of these types."""
        rule = vmap_rules.table.get(primitive)
        call = rule and self.replay(primitive, rule, self.parent, vals, (self.axis_size, *dims), params)
        if type(call) is list:
            out, (dim, aval) = call
            return ((out, dim, aval),)
        results = self.run_rule(primitive, args, vals, dims, params)
        if call is not None:
            call.learn((results[0][0],), results[0][1:])
        return results

    def _checked(self, primitive: Primitive, out: Any, dim: Any, aval: ShapedArray | None) -> Result:
        """Check that one element of a result is of type `aval` (None: not known); return the result with the type."""
        if dim is None:
            if aval is not None and getattr(out, "aval", None) is not aval:
                check_result(vmap_rules, primitive, out, aval, ", the same for every element,")
            return out, None, aval
        try:  # at once for what is frequent
            full = out.aval
            if dim >= 0 and full.shape[dim] == self.axis_size and _elements[full, dim] is aval:
                return out, dim, aval
        except (AttributeError, IndexError, KeyError, TypeError):
            pass
        shape = getattr(out, "shape", ())
        if not isinstance(dim, int) or not 0 <= dim < len(shape) or shape[dim] != self.axis_size:
            refuse_batch(primitive, self.axis_size, out, dim)
        element = mapped_aval(get_aval(out), dim)
        if element is not aval and aval is not None:
            check_result(vmap_rules, primitive, BatchTracer(self, out, dim), aval, f", batched along axis {dim},")
        return out, dim, element

    def unbox(self, x: Any) -> tuple[Any, int | None]:
        """Value and batching dimension (or None) of any value."""
        return (x.val, x.batch_dim) if type(x) is BatchTracer and x._trace is self else (x, None)


def _refuse_loop(primitive: Primitive, axis_name: Any) -> None:
    """Elements one after the other cannot wait for each other."""
    if primitive.decomposition is not None or vmap_rules.is_written(primitive):
        return
    if "collective" in primitive.tags:
        raise MissingRuleError(
            f"primitive {primitive.name!r}: nobody wrote a collective rule for it, and it is applied over the "
            f"mapped axis {axis_name!r}; register one with collective_rules, or give it a decomposition"
        )
    raise MissingRuleError(
        f"primitive {primitive.name!r}: a program in its parameters uses the mapped axis {axis_name!r}, and nobody "
        "wrote a vmap rule for it; register one with vmap_rules (batch_jaxpr batches the program)"
    )


INHERITED: Any = object()


def mapped_axis(name: Any) -> MappedAxis | None:
    """The names of an axis, of what is given as `axis_name`."""
    if name is INHERITED:
        return state.rule_axis
    return name if name is None or type(name) is MappedAxis else MappedAxis(name)


def batch_flat(
    fun: Callable[..., Sequence[Any]],
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    axis_name: Any = INHERITED,
    debug: Any = None,
) -> tuple[list[Any], list[int | None]]:
    """Batch a flat function: values and batching dimensions in and out.

    Args:
        fun: `(*vals) -> sequence of values`, written for one element.
        axis_size: size n of the batch.
        vals: arrays; `vals[i]` has an axis of size n at `dims[i]`, unless that is None.
        dims: batching dimensions.
        axis_name: a name that collectives in `fun` may use, or a `MappedAxis`. By default none; in a vmap rule that of
            its axis, which is split as that is.
        debug: the user's function, for messages.

    Returns:
        Results and their batching dimensions (None: the result is the same for every element).
    """
    axis = mapped_axis(axis_name)
    trace = BatchTrace(state.trace, axis_size, axis, debug)
    boxed = [x if d is None else BatchTracer(trace, as_array(x), d) for x, d in zip(vals, dims, strict=True)]
    if axis is None and state.rule_axis is None:
        outs = run_with_trace(trace, fun, boxed)
    else:
        axes = ((axis.name, axis_size),) if axis is not None and axis.name is not None else ()
        outs = run_within((named_axes(axes), Changed(state, "rule_axis", None)), run_with_trace, trace, fun, boxed)
    pairs = [trace.unbox(x) for x in outs]
    refuse_leaks(trace)
    return [x for x, _ in pairs], [d for _, d in pairs]


# -- helpers for rules -------------------------------------------------------------------------------------------


_elements: dict[tuple[ShapedArray, int], ShapedArray] = {}
clears_cache(_elements.clear)


def mapped_aval(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """Type of one element of a batch: without the axis `dim`."""
    if dim is None:
        return aval
    found = _elements.get((aval, dim))
    if found is None:
        shape = aval.shape
        found = aval.update(shape[:dim] + shape[dim + 1 :])
        if aval.refinement is not None:
            found = found.refined(aval.refinement.without_axis(dim)[0])
        _elements[aval, dim] = found
    return found


def unmapped_aval(axis_size: int, dim: int | None, aval: ShapedArray) -> ShapedArray:
    """Type of a batch: with an axis of `axis_size` at `dim`."""
    if dim is None:
        return aval
    shape = aval.shape
    found = aval.update((*shape[:dim], axis_size, *shape[dim:]))
    if aval.refinement is None:
        return found
    return found.refined(aval.refinement.with_axis(dim, () if state.rule_axis is None else state.rule_axis.spmd))


def axis_of_operands(axis: MappedAxis | None, vals: Sequence[Any], dims: Sequence[int | None]) -> MappedAxis | None:
    """Return a mapped axis with the names that the first operand's type says of it, unless it has names already."""
    if axis is not None and axis.spmd:
        return axis
    for x, d in zip(vals, dims, strict=True):
        refinement = getattr(getattr(x, "aval", None), "refinement", None)
        if d is not None and refinement is not None and (names := refinement.without_axis(d)[1]):
            return MappedAxis(None if axis is None else axis.name, names)
    return axis


def move_batch_axis(axis_size: int, source: int | None, destination: int, x: Any) -> Any:
    """`x` with its batching axis at `destination`; a value that is not mapped is broadcast.

    Args:
        axis_size: size n of the batch.
        source: where the axis is, or None.
        destination: where it has to be.
        x: an array of shape `s` with an axis of size n at `source`, or of shape `s` where that is None.

    Returns:
        An array of shape `s` with an axis of size n at `destination`.
    """
    if source is None:
        return structural.broadcast_axis(x, axis_size, destination)
    return x if source == destination else structural.move_axis(x, source, destination)


def _vmap_from_decomposition(primitive: Primitive) -> Callable[..., Any] | None:
    body = flat_decomposition(primitive)
    if body is None:
        return None

    def rule(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        outs, dims_out = batch_flat(functools.partial(body, **params), axis_size, vals, dims)
        return (outs, dims_out) if primitive.multiple_results else (outs[0], dims_out[0])

    return rule


vmap_rules.derivations.append(Derivation("decomposition", _vmap_from_decomposition, needs="a decomposition"))


tree.mark_leaf_types(BatchTracer)
