"""The partitioning of a call, on flat lists: `Partitioning` asks the user's functions, `Batch` handles `vmap`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corejax.extend import ClosedJaxpr, ShapedArray, Tracer, fun_name, jaxpr_as_fun, move_batch_axis, stage, tree
from corejax.extend.messages import run_within
from corejax.extend.transforms import batch_flat, named_axes, unmapped_aval
from corejax.extend.types import ShapeDtypeStruct
from corejax.sharding import Sharding
from corejax_parallel.mesh import Mesh
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.partitioning.sharding_rule import NumberedRule, SdyShardingRule, numbered, parse_rule

Avals = Sequence[ShapedArray]
Shardings = Sequence[Sharding]


class Answer(NamedTuple):
    """The program of each device, with its mesh and shardings.

    Attributes:
        mesh: the mesh; its axes are bound in the program.
        program: program from a device's parts of the operands to its parts of the results.
        operands, results: shardings of the operands and results.
    """

    mesh: Any
    program: ClosedJaxpr
    operands: list[Sharding]
    results: list[Sharding]


@dataclass(frozen=True, repr=False)
class Partitioning:
    """The arguments of `def_partition`, and the structure of the function's arguments. A static parameter.

    Attributes:
        fun: the function.
        partition, sharding_rule, decode_shardings: the arguments of `def_partition`.
        static_args: the static arguments, which are passed to `partition` and `sharding_rule` first.
        in_tree, out_tree: structures of the tuple of dynamic arguments, and of the result.
    """

    fun: Callable[..., Any]
    partition: Callable[..., Any]
    sharding_rule: Any = field(hash=False)
    decode_shardings: bool
    static_args: tuple[Any, ...] = field(hash=False)
    in_tree: Any
    out_tree: Any

    @property
    def what(self) -> str:
        """The name of the call in messages."""
        return f"custom_partitioning of {fun_name(self.fun)}"

    @property
    def __name__(self) -> str:  # the printer of programs shows it
        return fun_name(self.fun)

    def __repr__(self) -> str:
        return f"<{self.what}>"

    def rule(self, mesh: Any, avals: Avals, out_avals: Avals) -> NumberedRule | None:
        """Return the sharding rule for operands of these types, or None if none was given.

        Raises:
            TypeError: a function for the rule returns something else.
            ValueError: the rule does not fit the operands.
        """
        rule = self.sharding_rule
        if rule is None:
            return None
        options: dict[str, Any] = {}
        if callable(rule):
            structs = [[ShapeDtypeStruct(a.shape, a.dtype) for a in side] for side in (avals, out_avals)]
            rule = rule(*self.static_args, mesh, *structs)
            if isinstance(rule, list | tuple) and len(rule) == 2:
                rule, options = rule
        if not isinstance(rule, SdyShardingRule):
            rule = parse_rule(rule, **options)
        return numbered(self.what, rule, avals, out_avals)

    def split(self, avals: Avals, out_avals: Avals, operands: Shardings, results: Shardings) -> Answer:
        """Partition the call for the shardings that propagation has chosen, by the user's `partition`.

        Raises:
            TypeError: `partition` does not return four values of the right types.
            ValueError: a sharding does not fit, or the results of `lower_fn` do not have the types of the parts.
        """
        in_tree, out_tree = self.in_tree, self.out_tree
        mesh = next((s.mesh for s in (*operands, *results) if isinstance(s, NamedSharding)), None)
        structs = [
            [_struct(aval, s, self.decode_shardings) for aval, s in zip(*side, strict=True)]
            for side in ((avals, operands), (out_avals, results))
        ]
        answer = self.partition(
            *self.static_args, mesh, tree.tree_unflatten(in_tree, structs[0]), tree.tree_unflatten(out_tree, structs[1])
        )
        if not isinstance(answer, tuple | list) or len(answer) != 4:
            raise TypeError(
                f"{self.what}: partition must return (mesh, lower_fn, result_shardings, arg_shardings), got {answer!r}"
            )
        mesh, lower_fn, result_shardings, arg_shardings = answer
        if not isinstance(mesh, Mesh) or not callable(lower_fn):
            raise TypeError(
                f"{self.what}: partition must return a Mesh and a function first, got {mesh!r} and {lower_fn!r}"
            )
        placed_in = self._shardings("arg_shardings", arg_shardings, in_tree, avals, mesh)
        placed_out = self._shardings("result_shardings", result_shardings, out_tree, out_avals, mesh)
        parts = [part_type(a, s) for a, s in zip(avals, placed_in, strict=True)]
        program = self._program(lower_fn, mesh, in_tree, parts)
        wanted = [part_type(a, s) for a, s in zip(out_avals, placed_out, strict=True)]
        if [(a.shape, a.dtype) for a in program.out_avals] != [(a.shape, a.dtype) for a in wanted]:
            got, right = (", ".join(a.str_short() for a in each) for each in (program.out_avals, wanted))
            raise ValueError(
                f"{self.what}: lower_fn returns ({got}) for a device's part, but by result_shardings a part is "
                f"({right})"
            )
        return Answer(mesh, program, placed_in, placed_out)

    def _shardings(self, name: str, prefix: Any, treedef: Any, avals: Avals, mesh: Mesh) -> list[Sharding]:
        structure = tree.tree_unflatten(treedef, range(treedef.num_leaves))
        try:
            shardings = tree.broadcast_prefix(prefix, structure, lambda x: isinstance(x, Sharding))
        except ValueError as error:
            raise ValueError(f"{self.what}: {name} of partition have another structure: {error}") from None
        for sharding, aval in zip(shardings, avals, strict=True):
            if not isinstance(sharding, Sharding):
                raise TypeError(
                    f"{self.what}: {name} of partition must be shardings, got {sharding!r} of type "
                    f"{type(sharding).__name__}"
                )
            if sharding.device_tuple != mesh.device_tuple:
                raise ValueError(f"{self.what}: {name} of partition: {sharding} has other devices than its mesh")
            try:
                sharding.shard_shape(aval.shape)
            except ValueError as error:
                raise ValueError(f"{self.what}: {name} of partition: {error}") from None
        return list(shardings)

    def _program(self, lower_fn: Callable[..., Any], mesh: Mesh, in_tree: Any, parts: Avals) -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            return tree.tree_leaves(lower_fn(*tree.tree_unflatten(in_tree, args)))

        jaxpr, consts = run_within((named_axes(tuple(mesh.shape_tuple)),), stage, flat, list(parts))
        if any(isinstance(c, Tracer) for c in consts):
            raise ValueError(f"{self.what}: lower_fn uses values that are traced outside of it; pass them as arguments")
        return ClosedJaxpr(jaxpr, consts)


def part_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """Return the type of a device's part of a value."""
    return aval.update(shape=sharding.shard_shape(aval.shape), weak_type=False)


def _struct(aval: ShapedArray, sharding: Sharding, decode: bool) -> ShapeDtypeStruct:
    """Return the description of a value for the user's functions, with a sharding that divides its dimensions."""
    even = evenly(sharding, aval)
    if not decode:
        even = Sharding.like(even, even.tiles(aval.ndim))
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=even)


def evenly(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """Return a sharding that splits only the dimensions it divides, as propagation may choose shardings that do not.

    The spec of a `NamedSharding` gets an entry for each dimension.
    """
    axes = sharding.dimension_axes(aval.ndim)
    sizes = dict(sharding.mesh.shape_tuple)
    kept = [
        a or () if n % math.prod(sizes[x] for x in a or ()) == 0 else () for a, n in zip(axes, aval.shape, strict=True)
    ]
    if not isinstance(sharding, NamedSharding):
        return sharding if list(axes) == kept else NamedSharding(sharding.mesh, PartitionSpec())
    return NamedSharding(sharding.mesh, PartitionSpec(*[a[0] if len(a) == 1 else a or None for a in kept]))


class Batch(NamedTuple):
    """The partitioning of a batch of calls. A static parameter, like `Partitioning`.

    Attributes:
        inner: the partitioning of a single call, a `Partitioning` or `Batch`.
        dims_in: batch dimension of each operand, or None; results have the batch dimension first.
    """

    inner: Partitioning | Batch
    dims_in: tuple[int | None, ...]

    @property
    def __name__(self) -> str:
        return f"vmap({self.inner.__name__})"

    def __repr__(self) -> str:
        return f"<{self.what}>"

    @property
    def what(self) -> str:
        """The name of the call in messages."""
        return f"vmap of {self.inner.what}"

    def rule(self, mesh: Any, avals: Avals, out_avals: Avals) -> NumberedRule | None:
        """Return the rule of a single call with an additional factor for the batch."""
        one, one_out, size = self._elements(avals, out_avals)
        rule = self.inner.rule(mesh, one, one_out)
        if rule is None:
            return None
        number = len(rule.sizes)
        return rule._replace(
            operands=tuple([_insert(dims, d, (number,)) for dims, d in zip(rule.operands, self.dims_in, strict=True)]),
            results=tuple([_insert(dims, 0, (number,)) for dims in rule.results]),
            sizes=(*rule.sizes, size),
        )

    def split(self, avals: Avals, out_avals: Avals, operands: Shardings, results: Shardings) -> Answer:
        """Partition a single call, and map its program over each device's part of the batch.

        The batch is split over the axes of the last value that splits its batch dimension, if a single call does not
        use these axes and they divide the batch.
        """
        one, one_out, size = self._elements(avals, out_avals)
        dims_out = [0] * len(out_avals)
        values = [*zip((*operands, *results), (*avals, *out_avals), (*self.dims_in, *dims_out), strict=True)]
        of_one = [_without_dim(s, a, d) for s, a, d in values]
        inner = self.inner.split(one, one_out, of_one[: len(avals)], of_one[len(avals) :])
        used = {name for s in (*inner.operands, *inner.results) for name in _names(s)}
        sizes = dict(inner.mesh.shape_tuple)
        batch = next(
            (
                axes
                for s, a, d in reversed(values)
                if d is not None and s.mesh == inner.mesh and (axes := s.dimension_axes(a.ndim)[d])
                if used.isdisjoint(axes) and size % math.prod(sizes[name] for name in axes) == 0
            ),
            (),
        )
        count = size // math.prod(sizes[name] for name in batch)
        program = _batched(inner.program, inner.mesh, count, self.dims_in)
        return Answer(
            inner.mesh,
            program,
            [_with_dim(s, a.ndim, d, batch) for s, a, d in zip(inner.operands, one, self.dims_in, strict=True)],
            [_with_dim(s, a.ndim, 0, batch) for s, a in zip(inner.results, one_out, strict=True)],
        )

    def _elements(self, avals: Avals, out_avals: Avals) -> tuple[list[ShapedArray], list[ShapedArray], int]:
        size = next(a.shape[d] for a, d in zip(avals, self.dims_in, strict=True) if d is not None)
        pairs = zip(avals, self.dims_in, strict=True)
        one = [a if d is None else a.update(shape=_remove(a.shape, d)) for a, d in pairs]
        return one, [a.update(shape=a.shape[1:]) for a in out_avals], size


def _insert(entries: tuple[Any, ...], position: int | None, *new: Any) -> tuple[Any, ...]:
    """Insert entries at a position; return the entries unchanged for None."""
    return entries if position is None else (*entries[:position], *new, *entries[position:])


def _remove(entries: tuple[Any, ...], position: int) -> tuple[Any, ...]:
    """Remove the entry at a position."""
    return (*entries[:position], *entries[position + 1 :])


def _names(sharding: Sharding) -> set[Any]:
    return {name for axes in sharding.dimension_axes(sharding._least_ndim()) for name in axes or ()}


def _without_dim(sharding: Sharding, aval: ShapedArray, dim: int | None) -> Sharding:
    """Return the sharding of one element of a batch."""
    if dim is None or not isinstance(sharding, NamedSharding):
        tiles = sharding.tiles(aval.ndim)
        return sharding if dim is None else sharding.like(tiles.take(0, dim))
    return NamedSharding(sharding.mesh, PartitionSpec(*_remove(sharding.dimension_axes(aval.ndim), dim)))


def _with_dim(sharding: Sharding, ndim: int, dim: int | None, axes: tuple[Any, ...]) -> Sharding:
    """Return the sharding of a batch from that of an element, with the batch dimension split over `axes`."""
    if dim is None:
        return sharding
    return NamedSharding(sharding.mesh, PartitionSpec(*_insert(sharding.dimension_axes(ndim), dim, axes)))


def _batched(program: ClosedJaxpr, mesh: Any, size: int, dims: Sequence[int | None]) -> ClosedJaxpr:
    """Map a program of parts over a batch; results have the batch dimension first."""

    def flat(*args: Any) -> list[Any]:
        outs, dims_out = batch_flat(jaxpr_as_fun(program), size, args, dims)
        return [move_batch_axis(size, d, 0, x) for x, d in zip(outs, dims_out, strict=True)]

    avals = [unmapped_aval(size, d, a) for a, d in zip(program.in_avals, dims, strict=True)]
    jaxpr, consts = run_within((named_axes(tuple(mesh.shape_tuple)),), stage, flat, avals)
    return ClosedJaxpr(jaxpr, consts)
