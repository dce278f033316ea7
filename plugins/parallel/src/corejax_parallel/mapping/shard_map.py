"""`shard_map` and `smap`: map functions of blocks over axes of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

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
from corejax.extend.transforms import axes_in_scope, cell_arguments, in_context, named_as, named_axes, with_cells
from corejax_parallel.collectives.varying import tracked_axes
from corejax_parallel.contexts import axes_of_body, bodies, get_mesh, mesh_of_body
from corejax_parallel.mapping.blocks import block_type, counts, for_leaves, names_in
from corejax_parallel.mapping.primitive import shard_map_p, sizes_of
from corejax_parallel.mapping.sameness import differing
from corejax_parallel.mesh import AbstractMesh, Mesh
from corejax_parallel.partition_spec import PartitionSpec
from corejax_parallel.types.refinement import with_vma
from corejax_parallel.types.vma import ManualAxes

P = ParamSpec("P")
R = TypeVar("R")


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = ...,
    mesh: Any = None,
    axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = ...,
    mesh: Any = None,
    axis_names: Iterable[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
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
    """Convert a function of blocks to a function of whole arrays, mapped over axes of a mesh.

    `f` gets a block of each argument, and runs once for each block, on the device that has it. A call is compiled and
    `f` is traced once for each signature, as by `jit`. `f` may use collectives over the mapped axes. With the setting
    `disable_jit`, all blocks are computed on the host, operation by operation.

    Args:
        f: function of blocks, in pytrees. If omitted, the result is a decorator.
        out_specs: how blocks are assembled to results: a pytree of `PartitionSpec`s that is a prefix of the result. The
            blocks must be the same along axes that a spec does not name.
        in_specs: how arguments are split into blocks: a `PartitionSpec`, or a pytree of these that is a prefix of the
            tuple of arguments. An argument with None is not split. If such an argument is not an array, `f` gets it
            unchanged, at the cost of a trace at each call. By default the explicit shardings of the arguments' types,
            if all mapped axes are of type Explicit.
        mesh: a `Mesh` or `AbstractMesh`; by default the mesh of the context (of `set_mesh` or an enclosing
            `shard_map`).
        axis_names: the mapped axes; by default all axes of the mesh. The compiler partitions over the others.
        check_vma: whether to raise an error if a result may differ along an axis that its spec does not name.

    Returns:
        A function of whole arrays with the positional arguments of `f`.

    Raises:
        TypeError: an argument or result is not an array, a spec is not a `PartitionSpec`, or the mesh is not a mesh.
        ValueError: a spec does not fit its array, a size is not divisible, or the mesh does not have an axis.
    """
    if f is None:
        return lambda fun: shard_map(
            fun, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    if not callable(f):
        raise TypeError(f"shard_map transforms a function, got {f!r} of type {type(f).__name__}")
    mapped = _Mapped(f, mesh, in_specs, out_specs, axis_names, check_vma)
    compiled: list[Any] = []  # the jitted function, created by the first call outside of transformations
    may_have_objects = None in tree.tree_leaves(in_specs, is_leaf=_is_spec)

    @api_boundary
    @named_as(f, _NAMES)
    def call(*args: Any) -> Any:
        if may_have_objects and any(is_object := _not_arrays(mapped.what, in_specs, args)):
            leaves, in_tree = tree.tree_flatten(args)
            arrays, objects = partition_list(is_object, leaves)
            specs, _ = partition_list(is_object, _specs(mapped.what, "in_specs", in_specs, in_tree))

            def of_arrays(*xs: Any) -> Any:
                return f(*tree.tree_unflatten(in_tree, merge_lists(is_object, xs, objects)))

            named = named_as(f, _NAMES)(of_arrays)
            return shard_map(
                named, out_specs=out_specs, in_specs=tuple(specs), mesh=mesh, axis_names=axis_names, check_vma=check_vma
            )(*arrays)
        if in_context() or any(_is_traced(mapped.what, x) for x in tree.tree_leaves(args)):
            return mapped.with_cells(*args)
        if not compiled:
            compiled.append(exported("jit")(named_as(f, _NAMES)(lambda *xs: mapped.with_cells(*xs))))
        return compiled[0](*args)

    return call


_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")
_MAX_TRACES = 1024  # cached for one function


class _Traced(NamedTuple):
    """The cached trace of a function for one signature."""

    closed: ClosedJaxpr
    consts: list[Any]
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]
    out_tree: Any


class _Mapped:
    """The mapped function, which is traced once for each signature, so that compiled programs are found in the cache.

    The key of a trace is the signature: structure and types of the arguments, the mesh, settings, and axes in scope.
    """

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

    def with_cells(self, *args: Any) -> Any:
        """Call the function, in which a cell among the arguments holds its block; the last blocks become its value."""
        prefix = None if self.in_specs is ... else self.in_specs
        pairs = [] if cell_arguments.value is None else cell_arguments.value.mapped(args, prefix)
        if not pairs:
            return self(*args)
        if self.in_specs is ...:
            raise ValueError(f"{self.what}: in_specs cannot be left out for references, such as {pairs[0][0]!r}")
        cells = [cell for cell, _ in pairs]
        specs = [PartitionSpec() if spec is None else spec for _, spec in pairs]

        @named_as(self.fun, _NAMES)
        def body(xs: Any, values: Any) -> Any:
            out, *last = with_cells(lambda: [self.fun(*xs)], cells)(*values)
            return out, last

        in_specs, out_specs = (self.in_specs, specs), (self.out_specs, specs)
        inner = _Mapped(body, self.mesh, in_specs, out_specs, self.axis_names, self.check_vma)
        out, values = inner(args, [cell.get() for cell in cells])
        for cell, value in zip(cells, values, strict=True):
            cell.set(value)
        return out

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
            if not any(isinstance(c, Tracer) for c in traced.consts):  # tracers are valid in an enclosing trace only
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
        tracked: tuple[tuple[ManualAxes, None], ...] = ()
        if self.check_vma:
            tracked = ((tracked_axes(tuple(sizes)), None),)
            blocks = [with_vma(a, a.vma.union(names_in(spec))) for a, spec in zip(blocks, specs, strict=True)]
        axes = named_axes((*axes_of_body(mesh, sizes, what), *tracked))
        jaxpr, consts = run_within((axes,), stage, flat, blocks)
        out = _specs(what, "out_specs", self.out_specs, flat.out_tree)
        closed = close_over_consts(jaxpr)
        specs = [*[PartitionSpec()] * len(consts), *specs]
        _check_results(what, closed, out, sizes)
        if self.check_vma:
            run_within((axes,), _check_same, what, closed, specs, out, sizes)
        return _Traced(closed, consts, tuple(specs), tuple(out), flat.out_tree)


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any) -> Any:
    """Map a function of blocks over a single axis of the context's mesh; a `shard_map` with simpler arguments.

    Args:
        f: function of blocks. If omitted, the result is a decorator with these options.
        in_axes: the dimension of each argument that the axis splits, or None; a prefix of the tuple of arguments. By
            default the explicit shardings of the arguments' types, if the axis is of type Explicit.
        out_axes: the dimension of each result that the axis splits, or None.
        axis_name: name of the mesh's axis.

    Raises:
        TypeError, ValueError: see `shard_map`.
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
                    f"{what}: axis {name!r} is already manual in the enclosing {outer.what}: the values are blocks "
                    "along it. Name other axes, axis_names={...}"
                )


def _mesh(what: str, mesh: Any) -> Any:
    if mesh is None:
        current = get_mesh()
        if current.empty:
            raise ValueError(f"{what}: it needs a mesh: mesh=corejax.make_mesh(...), or with corejax.set_mesh(mesh)")
        return current
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"{what}: mesh is a Mesh or AbstractMesh, got {mesh!r} of type {type(mesh).__name__}")
    enclosing = mesh_of_body()  # the same axes, perhaps with devices
    if isinstance(mesh, AbstractMesh) and enclosing is not None and mesh.shape_tuple == enclosing.shape_tuple:
        return enclosing
    return mesh


def _axis_names(what: str, mesh: Any, axis_names: Iterable[Any]) -> tuple[Any, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"{what}: axis_names has {name!r}, but the mesh has the axes {mesh.axis_names}")
    return names or mesh.axis_names


def _value(what: str, x: Any) -> Any:
    try:
        get_aval(x)
    except TypeError as error:
        raise TypeError(f"{what}: arguments must be pytrees of arrays: {error}") from None
    return x if hasattr(x, "aval") else as_array(x)


def _is_traced(what: str, x: Any) -> bool:
    return type(x) is not Array and isinstance(_value(what, x), Tracer)


def _not_arrays(what: str, in_specs: Any, args: tuple[Any, ...]) -> list[bool]:
    """Return whether each leaf of the arguments is an object other than an array, with None as its spec."""
    specs = for_leaves(what, "in_specs", in_specs, args, _is_spec)
    return [spec is None and not is_array_like(x) for x, spec in zip(tree.tree_leaves(args), specs, strict=True)]


def _specs_of_types(what: str, mesh: Any, manual: tuple[Any, ...], avals: Sequence[ShapedArray]) -> list[PartitionSpec]:
    """Return the specs by the explicit shardings of the arguments' types, restricted to the mapped axes."""
    others = [name for name in manual if name not in mesh.explicit_axes]
    if others:
        raise TypeError(
            f"{what}: in_specs may be left out only if all axes are of type Explicit, so that types of arrays have "
            f"shardings; {', '.join(map(repr, others))} of {mesh} {'is' if len(others) == 1 else 'are'} not"
        )
    return [
        PartitionSpec(*([n for n in axes or () if n in manual] for axes in a.explicit_sharding.spec.axes()))
        if a.explicit_sharding is not None
        else PartitionSpec()
        for a in avals
    ]


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _specs(what: str, argument: str, prefix: Any, treedef: Any) -> list[PartitionSpec]:
    """Return a spec for each leaf."""
    structure = tree.tree_unflatten(treedef, range(treedef.num_leaves))
    specs = [PartitionSpec() if s is None else s for s in for_leaves(what, argument, prefix, structure, _is_spec)]
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"{what}: {argument} is a pytree of PartitionSpecs (corejax.P), got {spec!r} of type "
                f"{type(spec).__name__}"
            )
        if spec.unreduced or spec.reduced:
            raise NotImplementedError(f"{what}: {argument} has {spec}, but unreduced arrays do not exist: use lax.psum")
    return specs


def _block(what: str, number: int, aval: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> Any:
    """Return the type of an argument's blocks."""
    _check_spec(what, f"argument {number}", aval, spec, sizes)
    for d, (n, count) in enumerate(zip(aval.shape, counts(spec, sizes, aval.ndim), strict=True)):
        if n % count:
            raise ValueError(
                f"{what}: dimension {d} of argument {number}, {aval.str_short(short_dtypes=False)}, is split into "
                f"{count} blocks by {spec}, but {n} is not a multiple of {count}"
            )
    return block_type(aval, spec, sizes)


def _check_spec(what: str, value: str, aval: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> None:
    for name in names_in(spec):
        if name not in sizes:
            raise ValueError(f"{what}: {spec} of {value} names {name!r}, but it is mapped over {tuple(sizes)}")
    if any(axes is None for axes in spec.axes()):
        raise ValueError(f"{what}: {spec} of {value} has UNCONSTRAINED, which does not define blocks")
    if len(spec) > aval.ndim:
        raise ValueError(
            f"{what}: {spec} of {value} has {len(spec)} entries, but it is {aval.str_short(short_dtypes=False)}"
        )


def _check_results(what: str, closed: ClosedJaxpr, specs: Sequence[PartitionSpec], sizes: dict[Any, int]) -> None:
    for i, (aval, spec) in enumerate(zip(closed.out_avals, specs, strict=True)):
        _check_spec(what, f"result {i}", aval, spec, sizes)


def _check_same(
    what: str, closed: ClosedJaxpr, in_specs: Sequence[PartitionSpec], out_specs: Sequence[Any], sizes: dict[Any, int]
) -> None:
    """Raise ValueError if a result may differ along an axis that its spec does not name.

    The `vma` of most results shows that they do not differ; only for the others, `differing` analyses the program.
    """
    for name, size in sizes.items():
        if all(name in names_in(s) or name not in a.vma for a, s in zip(closed.out_avals, out_specs, strict=True)):
            continue
        results = differing(closed, size, name, [name in names_in(spec) for spec in in_specs])
        for i, (differs, spec) in enumerate(zip(results, out_specs, strict=True)):
            if differs and name not in names_in(spec):
                raise ValueError(
                    f"{what}: result {i} may differ along axis {name!r}, which its spec {spec} does not name. Name it, "
                    f"reduce over it (corejax.lax.psum(x, {name!r})), or pass check_vma=False if it is the same"
                )
