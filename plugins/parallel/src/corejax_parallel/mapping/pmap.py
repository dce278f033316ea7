"""`pmap`: map a function along an axis of its arguments, with each element on a device of its own.

    xla_pmap : a[n, *s] -> b[n, *t]        given a program a[s] -> b[t]

`pmap` is a compiled `shard_map` over a mesh with a single axis. A `pmap` inside another runs on the device of the outer
element, as `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from corejax.extend import (
    ClosedJaxpr,
    FlatFunction,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    close_over_consts,
    fun_name,
    get_aval,
    impl_rules,
    jaxpr_as_fun,
    memoised,
    stage,
    tree,
)
from corejax.extend.messages import run_within
from corejax.extend.plugins import exported
from corejax.extend.transforms import named_as, named_axes, structural, unmapped_aval
from corejax.extend.types import as_dim
from corejax_parallel.mapping.blocks import for_leaves
from corejax_parallel.mapping.primitive import by_program, runs_piecewise, shard_map_p
from corejax_parallel.mapping.sameness import differing
from corejax_parallel.mesh import Mesh, grid
from corejax_parallel.partition_spec import PartitionSpec

Axes = tuple[int | None, ...]


P = ParamSpec("P")
R = TypeVar("R")


@overload
def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[P, R]: ...
@overload
def pmap(
    fun: None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Map a function along an axis of its arguments, with each element on a device of its own.

    Args:
        fun: function of elements. If omitted, the result is a decorator.
        axis_name: name of the axis, for collectives.
        in_axes: the mapped axis of each argument, or None for arguments that all elements share: an integer for all
            arguments, or a pytree that is a prefix of the tuple of arguments. Keyword arguments are mapped along axis
            0.
        out_axes: the mapped axis of each result, or None for results that are the same for all elements.
        static_broadcasted_argnums: positions of hashable arguments that are passed to the function unchanged.
        devices: the devices; by default the first devices of this process.
        backend: a platform, instead of devices.
        axis_size: number of elements; required if no argument is mapped.
        donate_argnums: positions of arguments to donate: results may reuse their memory.

    Returns:
        A function of arrays with the mapped axis; its results are sharded over the devices.

    Raises:
        TypeError: an argument is not an array, or an axis is not an integer.
        ValueError: sizes differ, there are more elements than devices, a result with out axis None differs from element
            to element, or `devices` is empty.
    """
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static_broadcasted_argnums,
            devices=devices,
            backend=backend,
            axis_size=axis_size,
            donate_argnums=donate_argnums,
        )
    if not callable(fun):
        raise TypeError(f"pmap transforms a function, got {fun!r} of type {type(fun).__name__}")
    what = f"pmap of {fun_name(fun)}"
    if devices is not None and not len(devices):
        raise ValueError(f"{what}: devices is empty; pass some of corejax.devices(), or leave it out")
    name = f"<axis of {fun_name(fun)}>" if axis_name is None else axis_name
    static = _positions(static_broadcasted_argnums)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        called, dynamic = _without_static(what, fun, args, static)
        leaves, in_tree = tree.tree_flatten((dynamic, kwargs))
        axes = _in_axes(what, in_axes, args, static, dynamic, kwargs, in_tree)
        size = _size(what, leaves, axes, axis_size)
        flat = FlatFunction(called, in_tree, with_kwargs=True)
        avals = [_element(get_aval(x), d) for x, d in zip(leaves, axes, strict=True)]
        scope = named_axes(((name, size),))
        jaxpr, consts = run_within((scope,), stage, flat, avals)
        closed = close_over_consts(jaxpr)
        axes = (*[None] * len(consts), *axes)
        outs_axes = _out_axes(what, out_axes, flat.out_tree, closed)
        run_within((scope,), _check_same, what, closed, size, name, axes, outs_axes)
        params = {
            "axis_name": name,
            "axis_size": size,
            "call_jaxpr": closed,
            "in_axes": axes,
            "mapped_invars": tuple([d is not None for d in axes]),
            "mesh": _mesh(what, name, size, devices, backend),
            "name": fun_name(fun),
            "out_axes": outs_axes,
        }
        outs = xla_pmap_p.bind(*consts, *leaves, **params)
        return tree.tree_unflatten(flat.out_tree, outs)

    mapped = named_as(fun, ("__module__", "__name__", "__qualname__", "__doc__"))(mapped)
    compiled = exported("jit")(mapped, static_argnums=static, donate_argnums=donate_argnums, inline=True)
    compiled.__wrapped__ = fun
    return compiled


# -- arguments ---------------------------------------------------------------------------------------------------


def _positions(given: Any) -> tuple[int, ...]:
    try:
        return tuple([as_dim(i) for i in (given if isinstance(given, tuple | list) else (given,))])
    except TypeError:
        raise TypeError(f"pmap: static_broadcasted_argnums are integers, got {given!r}") from None


def _without_static(
    what: str, fun: Callable[..., Any], args: tuple[Any, ...], static: tuple[int, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function of the dynamic arguments, and these arguments."""
    for i in static:
        if not -len(args) <= i < len(args):
            raise ValueError(f"{what}: static_broadcasted_argnums has {i}, but it is called with {len(args)} arguments")
    fixed = {i % len(args): args[i] for i in static}
    if not fixed:
        return fun, args

    @named_as(fun)
    def of_dynamic(*dynamic: Any, **kwargs: Any) -> Any:
        rest = iter(dynamic)
        return fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **kwargs)

    return of_dynamic, tuple([x for i, x in enumerate(args) if i not in fixed])


def _prefix(what: str, argument: str, axes: Any, structure: Any) -> list[Any]:
    found = for_leaves(what, argument, axes, structure, lambda x: x is None)
    for axis in found:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int | np.integer)):
            raise TypeError(f"{what}: {argument} are integers or None, got {axis!r} of type {type(axis).__name__}")
    return found


def _in_axes(
    what: str, in_axes: Any, args: Any, static: tuple[int, ...], dynamic: Any, kwargs: Any, in_tree: Any
) -> tuple[Any, ...]:
    """Return the mapped axis of each leaf, counted from the front, or None if the leaf is not mapped."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and static:
        if len(in_axes) != len(args):
            raise ValueError(f"{what}: in_axes has {len(in_axes)} entries for {len(args)} arguments")
        removed = {i % len(args) for i in static}
        in_axes = tuple([axis for i, axis in enumerate(in_axes) if i not in removed])
    numbered = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
    given = _prefix(what, "in_axes", in_axes, numbered[0]) + [0] * len(tree.tree_leaves(kwargs))
    leaves = tree.tree_leaves((dynamic, kwargs))
    axes = []
    for axis, x in zip(given, leaves, strict=True):
        ndim = get_aval(x).ndim
        if axis is not None and not -ndim <= axis < ndim:
            raise ValueError(
                f"{what}: in_axes has {axis} for an argument of type {get_aval(x).str_short(short_dtypes=False)}, "
                "which has no such axis"
            )
        axes.append(None if axis is None else int(axis) % ndim)
    return tuple(axes)


def _size(what: str, leaves: Sequence[Any], axes: Sequence[Any], given: int | None) -> int:
    sizes: list[int] = [get_aval(x).shape[d] for x, d in zip(leaves, axes, strict=True) if d is not None]
    if given is not None:
        sizes.insert(0, as_dim(given))
    if not sizes:
        raise ValueError(
            f"{what}: no argument is mapped and axis_size is not given, so the number of elements is not known"
        )
    if len(set(sizes)) > 1:
        first = "axis_size and " if given is not None else ""
        raise ValueError(f"{what}: {first}mapped axes must have one size, got sizes {sizes}")
    return sizes[0]


def _element(aval: ShapedArray, axis: int | None) -> ShapedArray:
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def _out_axes(what: str, out_axes: Any, out_tree: Any, closed: ClosedJaxpr) -> Axes:
    given = _prefix(what, "out_axes", out_axes, tree.tree_unflatten(out_tree, range(out_tree.num_leaves)))
    axes = []
    for axis, aval in zip(given, closed.out_avals, strict=True):
        if axis is not None and not -aval.ndim - 1 <= axis <= aval.ndim:
            raise ValueError(
                f"{what}: out_axes has {axis} for a result with elements of type {aval.str_short(short_dtypes=False)}"
            )
        axes.append(None if axis is None else int(axis) % (aval.ndim + 1))
    return tuple(axes)


def _check_same(what: str, closed: ClosedJaxpr, size: int, name: Any, axes: Axes, out_axes: Axes) -> None:
    """Raise ValueError if a result with out axis None may differ from element to element."""
    if None not in out_axes:
        return
    results = differing(closed, size, name, [d is not None for d in axes])
    for i, (differs, axis) in enumerate(zip(results, out_axes, strict=True)):
        if differs and axis is None:
            raise ValueError(f"{what}: out_axes is None for result {i}, which differs from element to element")


def _mesh(what: str, name: Any, size: int, devices: Sequence[Any] | None, backend: str | None) -> Mesh:
    if not isinstance(name, str):
        raise TypeError(f"{what}: axis_name is a string, got {name!r} of type {type(name).__name__}")
    function = "devices" if backend is not None else "local_devices"
    available = list(exported(function)(backend) if devices is None else devices)
    if len(available) < size:
        raise ValueError(
            f"{what}: it is mapped over {size} elements, but there are {len(available)} devices. For more CPU devices "
            "set corejax.config.num_cpu_devices before the first use"
        )
    if devices is not None and len(available) != size:
        raise ValueError(f"{what}: it is mapped over {size} elements, but {len(available)} devices are given")
    return Mesh(grid(available[:size], (size,)), (name,))


# -- the primitive -----------------------------------------------------------------------------------------------


def as_shard_map(
    *args: Any,
    axis_name: Any,
    axis_size: int,
    call_jaxpr: ClosedJaxpr,
    in_axes: Axes,
    mapped_invars: tuple[bool, ...],
    mesh: Mesh,
    name: str,
    out_axes: Axes,
) -> list[Any]:
    """Express `pmap` as `shard_map` of blocks of length 1; the decomposition of `xla_pmap`."""

    def block(*blocks: Any) -> list[Any]:
        elements = [x if d is None else structural.index_axis(x, 0, d) for x, d in zip(blocks, in_axes, strict=True)]
        outs = jaxpr_as_fun(call_jaxpr)(*elements)
        return [x if d is None else structural.broadcast_axis(x, 1, d) for x, d in zip(outs, out_axes, strict=True)]

    def staged() -> ClosedJaxpr:
        avals = [
            a if d is None else a.update(shape=(*a.shape[:d], 1, *a.shape[d:]))
            for a, d in zip(call_jaxpr.in_avals, in_axes, strict=True)
        ]
        jaxpr, consts = run_within((named_axes(((axis_name, axis_size),)),), stage, block, avals)
        return ClosedJaxpr(jaxpr, consts)

    outs: list[Any] = shard_map_p.bind(
        *args,
        jaxpr=memoised(call_jaxpr, ("pmap blocks", in_axes, out_axes), staged),
        mesh=mesh,
        in_specs=tuple([_spec(d, axis_name) for d in in_axes]),
        out_specs=tuple([_spec(d, axis_name) for d in out_axes]),
        axis_name=(axis_name,),
    )
    return outs


def _spec(axis: int | None, name: Any) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


xla_pmap_p = Primitive(
    "xla_pmap",
    multiple_results=True,
    tags=("higher_order", "binds_axes"),
    decomposition=as_shard_map,
    doc="Apply a program to elements on devices. Params: call_jaxpr, axis_name, axis_size, in_axes, out_axes.",
)


@impl_rules.register(xla_pmap_p, device=True)
def _impl(*args: Any, call_jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """Run a compiled program, cached with `call_jaxpr`; run operation by operation if `runs_piecewise`."""
    if runs_piecewise():
        return as_shard_map(*args, call_jaxpr=call_jaxpr, **params)
    return by_program(xla_pmap_p, args, params["name"], call_jaxpr, "call_jaxpr", params)


@abstract_eval_rules.register(xla_pmap_p)
def _type(
    *avals: ShapedArray, axis_size: int, call_jaxpr: ClosedJaxpr, in_axes: Axes, out_axes: Axes, **params: Any
) -> list[ShapedArray]:
    for i, (aval, wanted, d) in enumerate(zip(avals, call_jaxpr.in_avals, in_axes, strict=True)):
        whole = unmapped_aval(axis_size, d, wanted)
        if (aval.shape, aval.dtype) != (whole.shape, whole.dtype):
            raise TypeError(f"xla_pmap: operand {i} is {aval.str_short()}, its program is of {whole.str_short()}")
    return [
        a if d is None else a.update(shape=(*a.shape[:d], axis_size, *a.shape[d:]))
        for a, d in zip(call_jaxpr.out_avals, out_axes, strict=True)
    ]
