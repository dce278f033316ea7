"""`shard_map` and `smap`: functions of blocks of arrays, mapped over axes of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from corejax.extend import (
    Array,
    ClosedJaxpr,
    FlatFunction,
    ShapedArray,
    Tracer,
    as_array,
    close_over_consts,
    config,
    fun_name,
    get_aval,
    is_array_like,
    merge_lists,
    partition_list,
    stage,
    tree,
)
from corejax.extend.messages import api_boundary, run_within
from corejax.extend.plugins import exported
from corejax.extend.transforms import axes_in_scope, in_context, named_as, named_axes
from corejax_parallel.collectives.varying import told_along
from corejax_parallel.contexts import axes_of_body, bodies, get_mesh, mesh_of_body
from corejax_parallel.mapping.blocks import block_type, counts, for_leaves, names_in
from corejax_parallel.mapping.primitive import shard_map_p, sizes_of
from corejax_parallel.mapping.sameness import differing
from corejax_parallel.mesh import AbstractMesh, Mesh
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import with_vma


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = ...,
    mesh: Any = None,
    axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """A function of whole arrays, of one of their blocks.

    `f` sees one block of each argument, and runs for all of them, each on the device that has it: a call is compiled,
    and `f` traced once for each signature, as by `jit`. It may use collectives over the axes that it is mapped over.
    With the setting `disable_jit` all blocks are computed on the host, operation by operation.

    Args:
        f: function of blocks, in pytrees; without it, a decorator.
        out_specs: how blocks make up the results: a pytree of `PartitionSpec`s that is a prefix of the result. Along an
            axis that a spec does not name, all blocks are the same.
        in_specs: how arguments are cut into blocks: a pytree that is a prefix of the tuple of arguments, or one spec.
            An argument with None is not cut, and may be no array: then `f` gets it as it is, at the cost of a trace at
            each call. By default as the arguments' types say, if all axes that it is mapped over are of type Explicit.
        mesh: a `Mesh` or `AbstractMesh`; by default that of the context (`set_mesh`, or another `shard_map` around).
        axis_names: the axes that it is mapped over; by default all. Over the others the compiler splits as it likes.
        check_vma: whether a result that differs along an axis that its spec does not name is an error.

    Returns:
        The function of whole arrays, of the arguments in their positions.

    Raises:
        TypeError: arguments or results are no arrays, or what should be specs or a mesh is none.
        ValueError: a spec does not fit; a size does not divide; the mesh has no such axis.
    """
    if f is None:
        return lambda fun: shard_map(
            fun, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    if not callable(f):
        raise TypeError(f"shard_map transforms a function, got {f!r} of type {type(f).__name__}")
    mapped = _Mapped(f, mesh, in_specs, out_specs, axis_names, check_vma)
    compiled: list[Any] = []  # made when it is called by itself
    may_have_others = None in tree.tree_leaves(in_specs, is_leaf=_is_spec)

    @api_boundary
    @named_as(f, _NAMES)
    def call(*args: Any) -> Any:
        if may_have_others and any(others := _not_arrays(mapped.what, in_specs, args)):
            leaves, in_tree = tree.tree_flatten(args)
            arrays, objects = partition_list(others, leaves)
            specs, _ = partition_list(others, _specs(mapped.what, "in_specs", in_specs, in_tree))

            def of_arrays(*xs: Any) -> Any:
                return f(*tree.tree_unflatten(in_tree, merge_lists(others, xs, objects)))

            named = named_as(f, _NAMES)(of_arrays)
            return shard_map(
                named, out_specs=out_specs, in_specs=tuple(specs), mesh=mesh, axis_names=axis_names, check_vma=check_vma
            )(*arrays)
        if in_context() or any(_is_traced(mapped.what, x) for x in tree.tree_leaves(args)):
            return mapped(*args)
        if not compiled:
            compiled.append(exported("jit")(named_as(f, _NAMES)(lambda *xs: mapped(*xs))))
        return compiled[0](*args)

    return call


_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")
_MAX_TRACES = 1024  # of one function


class _Traced(NamedTuple):
    """What a call needs of an earlier one of its signature."""

    closed: ClosedJaxpr
    consts: list[Any]
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]
    out_tree: Any


class _Mapped:
    """The mapped function: traced once for each signature, so that what is compiled of it is found again."""

    def __init__(
        self, fun: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, axis_names: Any, check_vma: bool
    ) -> None:
        self.fun = fun
        self.what = f"shard_map of {fun_name(fun)}"
        self.mesh = mesh
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.axis_names = axis_names
        self.check_vma = check_vma
        self.traces: dict[Any, _Traced] = {}

    def __call__(self, *args: Any) -> Any:
        mesh = _mesh(self.what, self.mesh)
        manual = _axis_names(self.what, mesh, self.axis_names)
        _refuse_nested(self.what, manual)
        leaves, in_tree = tree.tree_flatten(args)
        values = [_value(self.what, x) for x in leaves]
        avals = tuple([get_aval(x) for x in values])
        key = (in_tree, avals, mesh, config.trace_key(), axes_in_scope())
        traced = self.traces.get(key)
        if traced is None:
            traced = self._trace(mesh, manual, in_tree, avals)
            if not any(isinstance(c, Tracer) for c in traced.consts):  # those belong to one trace of a function around
                self.traces[key] = traced
                while len(self.traces) > _MAX_TRACES:
                    self.traces.pop(next(iter(self.traces)), None)
        outs = shard_map_p.bind(
            *traced.consts,
            *values,
            jaxpr=traced.closed,
            mesh=mesh,
            in_specs=traced.in_specs,
            out_specs=traced.out_specs,
            axis_name=tuple(sizes_of(mesh, manual)),
        )
        return tree.tree_unflatten(traced.out_tree, outs)

    def _trace(self, mesh: Any, manual: tuple[Any, ...], in_tree: Any, avals: Sequence[ShapedArray]) -> _Traced:
        what, sizes = self.what, sizes_of(mesh, manual)
        if self.in_specs is ...:
            specs = _specs_of_types(what, mesh, manual, avals)
        else:
            specs = _specs(what, "in_specs", self.in_specs, in_tree)
        blocks = [_block(what, i, aval, spec, sizes) for i, (aval, spec) in enumerate(zip(avals, specs, strict=True))]
        flat = FlatFunction(self.fun, in_tree)
        told = ()
        if self.check_vma:
            told = ((told_along(sizes), None),)
            blocks = [with_vma(a, a.vma.union(names_in(spec))) for a, spec in zip(blocks, specs, strict=True)]
        axes = named_axes((*axes_of_body(mesh, sizes, what), *told))
        jaxpr, consts = run_within((axes,), stage, flat, blocks)
        out = _specs(what, "out_specs", self.out_specs, flat.out_tree)
        closed = close_over_consts(jaxpr)
        specs = [*[PartitionSpec()] * len(consts), *specs]
        _check_results(what, closed, out, sizes)
        if self.check_vma:
            run_within((axes,), _check_same, what, closed, specs, out, sizes)
        return _Traced(closed, consts, tuple(specs), tuple(out), flat.out_tree)


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any) -> Any:
    """`shard_map` along one axis of the context's mesh: the axis is where `in_axes` and `out_axes` say.

    Args:
        f: function of blocks; without it, the result is a decorator with these options.
        in_axes: for each argument the dimension that is split, or None; a prefix of the tuple of arguments. By default
            as the arguments' types say, if the axis is of type Explicit.
        out_axes: the same of the results.
        axis_name: the axis of the mesh.

    Raises:
        TypeError, ValueError: as of `shard_map`.
    """

    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def spec(axis: Any) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def is_axis(x: Any) -> bool:
        return x is None

    return shard_map(
        f,
        in_specs=... if in_axes is ... else tree.tree_map(spec, in_axes, is_leaf=is_axis),
        out_specs=tree.tree_map(spec, out_axes, is_leaf=is_axis),
        axis_names={axis_name},
    )


# -- arguments ---------------------------------------------------------------------------------------------------


def _refuse_nested(what: str, names: tuple[Any, ...]) -> None:
    for outer in bodies():
        for name in names:
            if name in outer.manual:
                raise ValueError(
                    f"{what}: axis {name!r} is manual already, in {outer.what} around it: the values here are blocks "
                    "along it. Name axes that are left, axis_names={...}"
                )


def _mesh(what: str, given: Any) -> Any:
    if given is None:
        found = get_mesh()
        if found.empty:
            raise ValueError(f"{what}: it needs a mesh: mesh=corejax.make_mesh(...), or with corejax.set_mesh(mesh)")
        return found
    if not isinstance(given, Mesh | AbstractMesh):
        raise TypeError(f"{what}: mesh is a Mesh or AbstractMesh, got {given!r} of type {type(given).__name__}")
    around = mesh_of_body()  # which may have devices
    if isinstance(given, AbstractMesh) and around is not None and given.shape_tuple == around.shape_tuple:
        return around
    return given


def _axis_names(what: str, mesh: Any, given: Iterable[Any]) -> tuple[Any, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"{what}: axis_names has {name!r}, and the mesh has the axes {mesh.axis_names}")
    return names or mesh.axis_names


def _value(what: str, x: Any) -> Any:
    try:
        get_aval(x)
    except TypeError as error:
        raise TypeError(f"{what}: arguments are arrays in pytrees: {error}") from None
    return x if hasattr(x, "aval") else as_array(x)


def _is_traced(what: str, x: Any) -> bool:
    return type(x) is not Array and isinstance(_value(what, x), Tracer)


def _not_arrays(what: str, in_specs: Any, args: tuple[Any, ...]) -> list[bool]:
    """Return which leaves of the arguments are no arrays and have None for a spec."""
    specs = for_leaves(what, "in_specs", in_specs, args, _is_spec)
    return [spec is None and not is_array_like(x) for x, spec in zip(tree.tree_leaves(args), specs, strict=True)]


def _specs_of_types(what: str, mesh: Any, manual: tuple[Any, ...], avals: Sequence[ShapedArray]) -> list[PartitionSpec]:
    """The specs that types of arguments say, over the axes that are mapped over."""
    others = [name for name in manual if name not in mesh.explicit_axes]
    if others:
        raise TypeError(
            f"{what}: in_specs may be left out if all axes are of type Explicit, so that types of arrays say how they "
            f"are split; {', '.join(map(repr, others))} of {mesh} {'is' if len(others) == 1 else 'are'} not"
        )
    return [
        PartitionSpec(*([n for n in axes or () if n in manual] for axes in a.explicit_sharding.spec.axes()))
        if a.explicit_sharding is not None
        else PartitionSpec()
        for a in avals
    ]


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _specs(what: str, argument: str, given: Any, treedef: Any) -> list[PartitionSpec]:
    """A spec for each leaf."""
    structure = tree.tree_unflatten(treedef, range(treedef.num_leaves))
    specs = [PartitionSpec() if s is None else s for s in for_leaves(what, argument, given, structure, _is_spec)]
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"{what}: {argument} is a pytree of PartitionSpecs (corejax.P), got {spec!r} of type "
                f"{type(spec).__name__}"
            )
        if spec.unreduced or spec.reduced:
            raise NotImplementedError(f"{what}: {argument} has {spec}, and arrays have their sums here: use lax.psum")
    return specs


def _block(what: str, number: int, aval: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """The type of an argument's blocks."""
    _check_spec(what, f"argument {number}", aval, spec, sizes)
    for d, (n, count) in enumerate(zip(aval.shape, counts(spec, sizes, aval.ndim), strict=True)):
        if n % count:
            raise ValueError(
                f"{what}: dimension {d} of argument {number}, {aval.str_short(short_dtypes=False)}, is cut into "
                f"{count} blocks by {spec}, and {n} is no multiple of {count}"
            )
    return block_type(aval, spec, sizes)


def _check_spec(what: str, whose: str, aval: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> None:
    for name in names_in(spec):
        if name not in sizes:
            raise ValueError(f"{what}: {spec} of {whose} names {name!r}, and it is mapped over {tuple(sizes)}")
    if any(axes is None for axes in spec.axes()):
        raise ValueError(f"{what}: {spec} of {whose} has UNCONSTRAINED, which says of no blocks")
    if len(spec) > aval.ndim:
        raise ValueError(
            f"{what}: {spec} of {whose} has {len(spec)} entries, and it is {aval.str_short(short_dtypes=False)}"
        )


def _check_results(what: str, closed: ClosedJaxpr, specs: Sequence[PartitionSpec], sizes: dict[Any, int]) -> None:
    for i, (aval, spec) in enumerate(zip(closed.out_avals, specs, strict=True)):
        _check_spec(what, f"result {i}", aval, spec, sizes)


def _check_same(
    what: str, closed: ClosedJaxpr, in_specs: Sequence[PartitionSpec], out_specs: Sequence[Any], sizes: dict[Any, int]
) -> None:
    """What its spec says to be the same along an axis does not differ there.

    Types tell that most results do not; what is computed, of the others.
    """
    for name, size in sizes.items():
        if all(name in names_in(s) or name not in a.vma for a, s in zip(closed.out_avals, out_specs, strict=True)):
            continue
        found = differing(closed, size, name, [name in names_in(spec) for spec in in_specs])
        for i, (differs, spec) in enumerate(zip(found, out_specs, strict=True)):
            if differs and name not in names_in(spec):
                raise ValueError(
                    f"{what}: result {i} may differ along axis {name!r}, which its spec {spec} does not name. Name it, "
                    f"reduce over it (corejax.lax.psum(x, {name!r})), or pass check_vma=False if it is the same"
                )
