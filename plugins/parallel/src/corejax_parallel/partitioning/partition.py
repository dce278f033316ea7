"""How a call is partitioned, on flat lists: what the user's functions say, and the same of a batch of calls."""

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
    """What each device does, and on which parts.

    Attributes:
        mesh: whose axes have names in the program.
        program: of a device's parts.
        operands, results: the shardings that it is for.
    """

    mesh: Any
    program: ClosedJaxpr
    operands: list[Sharding]
    results: list[Sharding]


@dataclass(frozen=True, repr=False)
class Partitioning:
    """What the author of a function said of it, and how its arguments lie in its operands. A static parameter.

    Attributes:
        fun: the function.
        partition, sharding_rule, decode_shardings: as given to `def_partition`.
        static_args: what else they are given.
        in_tree, out_tree: structure of the tuple of its other arguments, and of its result.
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
        """For messages."""
        return f"custom_partitioning of {fun_name(self.fun)}"

    @property
    def __name__(self) -> str:  # what programs are printed with
        return fun_name(self.fun)

    def __repr__(self) -> str:
        return f"<{self.what}>"

    def rule(self, mesh: Any, avals: Avals, out_avals: Avals) -> NumberedRule | None:
        """The sharding rule for operands of these types; None where there is none.

        Raises:
            TypeError: a function for it gives something else.
            ValueError: the rule does not fit the operands.
        """
        given = self.sharding_rule
        if given is None:
            return None
        more: dict[str, Any] = {}
        if callable(given):
            structs = [[ShapeDtypeStruct(a.shape, a.dtype) for a in side] for side in (avals, out_avals)]
            given = given(*self.static_args, mesh, *structs)
            if isinstance(given, list | tuple) and len(given) == 2:
                given, more = given
        if not isinstance(given, SdyShardingRule):
            given = parse_rule(given, **more)
        return numbered(self.what, given, avals, out_avals)

    def split(self, avals: Avals, out_avals: Avals, operands: Shardings, results: Shardings) -> Answer:
        """How it is done, where operands and results are to be split like this.

        Raises:
            TypeError: the user's function gives something else than four values, functions and shardings.
            ValueError: a sharding does not fit, or the program of a part gives other types than its parts have.
        """
        in_tree, out_tree = self.in_tree, self.out_tree
        mesh = next((s.mesh for s in (*operands, *results) if isinstance(s, NamedSharding)), None)
        structs = [
            [_struct(aval, s, self.decode_shardings) for aval, s in zip(*side, strict=True)]
            for side in ((avals, operands), (out_avals, results))
        ]
        given = self.partition(
            *self.static_args, mesh, tree.tree_unflatten(in_tree, structs[0]), tree.tree_unflatten(out_tree, structs[1])
        )
        if not isinstance(given, tuple | list) or len(given) != 4:
            raise TypeError(
                f"{self.what}: partition gives (mesh, lower_fn, result_shardings, arg_shardings), got {given!r}"
            )
        mesh, lower_fn, result_shardings, arg_shardings = given
        if not isinstance(mesh, Mesh) or not callable(lower_fn):
            raise TypeError(f"{self.what}: partition gives a Mesh and a function first, got {mesh!r} and {lower_fn!r}")
        placed_in = self._shardings("arg_shardings", arg_shardings, in_tree, avals, mesh)
        placed_out = self._shardings("result_shardings", result_shardings, out_tree, out_avals, mesh)
        parts = [part_type(a, s) for a, s in zip(avals, placed_in, strict=True)]
        program = self._program(lower_fn, mesh, in_tree, parts)
        wanted = [part_type(a, s) for a, s in zip(out_avals, placed_out, strict=True)]
        if [(a.shape, a.dtype) for a in program.out_avals] != [(a.shape, a.dtype) for a in wanted]:
            got, right = (", ".join(a.str_short() for a in each) for each in (program.out_avals, wanted))
            raise ValueError(
                f"{self.what}: lower_fn gives ({got}) for a device's part, and of result_shardings it is ({right})"
            )
        return Answer(mesh, program, placed_in, placed_out)

    def _shardings(self, name: str, given: Any, treedef: Any, avals: Avals, mesh: Mesh) -> list[Sharding]:
        structure = tree.tree_unflatten(treedef, range(treedef.num_leaves))
        try:
            found = tree.broadcast_prefix(given, structure, lambda x: isinstance(x, Sharding))
        except ValueError as error:
            raise ValueError(f"{self.what}: {name} of partition have another structure: {error}") from None
        for sharding, aval in zip(found, avals, strict=True):
            if not isinstance(sharding, Sharding):
                raise TypeError(
                    f"{self.what}: {name} of partition are shardings, got {sharding!r} of type "
                    f"{type(sharding).__name__}"
                )
            if sharding.device_tuple != mesh.device_tuple:
                raise ValueError(f"{self.what}: {name} of partition: {sharding} is of other devices than its mesh")
            try:
                sharding.shard_shape(aval.shape)
            except ValueError as error:
                raise ValueError(f"{self.what}: {name} of partition: {error}") from None
        return list(found)

    def _program(self, lower_fn: Callable[..., Any], mesh: Mesh, in_tree: Any, parts: Avals) -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            return tree.tree_leaves(lower_fn(*tree.tree_unflatten(in_tree, args)))

        jaxpr, consts = run_within((named_axes(tuple(mesh.shape_tuple)),), stage, flat, list(parts))
        if any(isinstance(c, Tracer) for c in consts):
            raise ValueError(f"{self.what}: lower_fn uses values that are traced outside of it; pass them as arguments")
        return ClosedJaxpr(jaxpr, consts)


def part_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """The type of a device's part."""
    return aval.update(shape=sharding.shard_shape(aval.shape), weak_type=False)


def _struct(aval: ShapedArray, sharding: Sharding, decode: bool) -> ShapeDtypeStruct:
    """What a function of the user's is told: shardings that divide, which propagation need not give."""
    even = evenly(sharding, aval)
    if not decode:
        even = Sharding.like(even, even.tiles(aval.ndim))
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=even)


def evenly(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """The sharding with dimensions whole that it does not divide, and a spec of as many entries as there are
    dimensions."""
    axes = sharding.dimension_axes(aval.ndim)
    sizes = dict(sharding.mesh.shape_tuple)
    kept = [
        a or () if n % math.prod(sizes[x] for x in a or ()) == 0 else () for a, n in zip(axes, aval.shape, strict=True)
    ]
    if not isinstance(sharding, NamedSharding):
        return sharding if list(axes) == kept else NamedSharding(sharding.mesh, PartitionSpec())
    return NamedSharding(sharding.mesh, PartitionSpec(*[a[0] if len(a) == 1 else a or None for a in kept]))


class Batch(NamedTuple):
    """A partitioning of a batch of calls. A static parameter, as what it is a batch of.

    Attributes:
        inner: of one call.
        dims_in: where operands have the batch, None where they have none; results have it first.
    """

    inner: Any
    dims_in: tuple[int | None, ...]

    @property
    def __name__(self) -> str:
        return f"vmap({self.inner.__name__})"

    def __repr__(self) -> str:
        return f"<{self.what}>"

    @property
    def what(self) -> str:
        """For messages."""
        return f"vmap of {self.inner.what}"

    def rule(self, mesh: Any, avals: Avals, out_avals: Avals) -> NumberedRule | None:
        """That of one call, and the batch a factor more."""
        one, one_out, size = self._elements(avals, out_avals)
        found = self.inner.rule(mesh, one, one_out)
        if found is None:
            return None
        number = len(found.sizes)
        return found._replace(
            operands=tuple([_with(dims, d, (number,)) for dims, d in zip(found.operands, self.dims_in, strict=True)]),
            results=tuple([_with(dims, 0, (number,)) for dims in found.results]),
            sizes=(*found.sizes, size),
        )

    def split(self, avals: Avals, out_avals: Avals, operands: Shardings, results: Shardings) -> Answer:
        """As one call is done, of each device's part of the batch."""
        one, one_out, size = self._elements(avals, out_avals)
        dims_out = [0] * len(out_avals)
        whole = [*zip((*operands, *results), (*avals, *out_avals), (*self.dims_in, *dims_out), strict=True)]
        of_one = [_without(s, a, d) for s, a, d in whole]
        inner = self.inner.split(one, one_out, of_one[: len(avals)], of_one[len(avals) :])
        taken = {name for s in (*inner.operands, *inner.results) for name in _names(s)}
        sizes = dict(inner.mesh.shape_tuple)
        batch = next(
            (
                axes
                for s, a, d in reversed(whole)
                if d is not None and s.mesh == inner.mesh and (axes := s.dimension_axes(a.ndim)[d])
                if taken.isdisjoint(axes) and size % math.prod(sizes[name] for name in axes) == 0
            ),
            (),
        )
        count = size // math.prod(sizes[name] for name in batch)
        program = _batched(inner.program, inner.mesh, count, self.dims_in)
        return Answer(
            inner.mesh,
            program,
            [_inserted(s, a.ndim, d, batch) for s, a, d in zip(inner.operands, one, self.dims_in, strict=True)],
            [_inserted(s, a.ndim, 0, batch) for s, a in zip(inner.results, one_out, strict=True)],
        )

    def _elements(self, avals: Avals, out_avals: Avals) -> tuple[list[ShapedArray], list[ShapedArray], int]:
        size = next(a.shape[d] for a, d in zip(avals, self.dims_in, strict=True) if d is not None)
        one = [a if d is None else a.update(shape=_with(a.shape, d)) for a, d in zip(avals, self.dims_in, strict=True)]
        return one, [a.update(shape=a.shape[1:]) for a in out_avals], size


def _with(entries: tuple[Any, ...], position: int | None, *new: Any) -> tuple[Any, ...]:
    """Entries with new ones at a position, or with the one there left out; as they are for None."""
    if position is None:
        return entries
    return (*entries[:position], *new, *entries[position + (not new) :])


def _names(sharding: Sharding) -> set[Any]:
    return {name for axes in sharding.dimension_axes(sharding._least_ndim()) for name in axes or ()}


def _without(sharding: Sharding, aval: ShapedArray, dim: int | None) -> Sharding:
    """The sharding of one element of a batch."""
    if dim is None or not isinstance(sharding, NamedSharding):
        tiles = sharding.tiles(aval.ndim)
        return sharding if dim is None else sharding.like(tiles.take(0, dim))
    return NamedSharding(sharding.mesh, PartitionSpec(*_with(sharding.dimension_axes(aval.ndim), dim)))


def _inserted(sharding: Sharding, ndim: int, dim: int | None, axes: tuple[Any, ...]) -> Sharding:
    """The sharding of a batch, of that of an element."""
    if dim is None:
        return sharding
    return NamedSharding(sharding.mesh, PartitionSpec(*_with(sharding.dimension_axes(ndim), dim, axes)))


def _batched(program: ClosedJaxpr, mesh: Any, size: int, dims: Sequence[int | None]) -> ClosedJaxpr:
    """A program of parts, over a batch; results have it first."""

    def flat(*args: Any) -> list[Any]:
        outs, found = batch_flat(jaxpr_as_fun(program), size, args, dims)
        return [move_batch_axis(size, d, 0, x) for x, d in zip(outs, found, strict=True)]

    avals = [unmapped_aval(size, d, a) for a, d in zip(program.in_avals, dims, strict=True)]
    jaxpr, consts = run_within((named_axes(tuple(mesh.shape_tuple)),), stage, flat, avals)
    return ClosedJaxpr(jaxpr, consts)
