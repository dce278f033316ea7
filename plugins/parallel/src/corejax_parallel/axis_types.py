"""`sharding.auto_axes`, `explicit_axes`: functions that see axes of the context's mesh as of another type.

Their arguments and results have types over a mesh with such axes, and are where they were.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corejax.extend import config, get_aval, is_array_like, tree
from corejax.extend.messages import Restoring, api_boundary, run_within
from corejax_parallel.contexts import reshard, within
from corejax_parallel.mesh import AxisType
from corejax_parallel.named_sharding import NamedSharding


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: Any = None
) -> Any:
    """A function for which axes of the mesh are of type Auto, and whose result is laid out as is said.

    Args:
        f: the function; without it, a decorator.
        axes: names of the axes; all of the mesh unless given.
        out_sharding: where results are: a sharding or a `PartitionSpec`, or a pytree of these that is a prefix of the
            result. Unless given, the argument `out_sharding` of each call, by keyword.

    Returns:
        The function; where no mesh is set and no sharding has one, results are where they are.

    Raises:
        TypeError: a call is not told `out_sharding`, and neither was this.
        ValueError: the mesh has no such axis, or shardings are over another mesh than the context's.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = _taken("auto_axes", "out_sharding", out_sharding, kwargs)
        mesh = _mesh("auto_axes", wanted)
        if mesh is None:
            return f(*args, **kwargs)
        types = _types("auto_axes", mesh, axes, AxisType.Auto)
        out = run_within(_within(mesh, types), f, *_cast(args, types), **_cast(kwargs, types))
        return reshard(out, wanted)

    return call


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None
) -> Any:
    """A function for which axes of the context's mesh are of type Explicit, of arguments laid out as is said.

    Args:
        f: the function; without it, a decorator.
        axes: names of the axes; all of the mesh unless given.
        in_sharding: where the positional arguments are: a sharding or a `PartitionSpec`, or a pytree of these that is a
            prefix of the tuple of arguments. Unless given, the argument `in_sharding` of each call, by keyword.

    Returns:
        The function.

    Raises:
        TypeError: a call is not told `in_sharding`, and neither was this.
        ValueError: no mesh is set, or it has no such axis, or shardings are over another one.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = _taken("explicit_axes", "in_sharding", in_sharding, kwargs)
        mesh = _mesh("explicit_axes", wanted)
        if config.context_mesh is None:
            raise ValueError("explicit_axes: no mesh is set; set one: with corejax.set_mesh(mesh)")
        types = _types("explicit_axes", mesh, axes, AxisType.Explicit)
        before = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        placed = _cast(run_within(_within(mesh, types), reshard, args, wanted), types)
        return _cast(run_within(_within(mesh, types), f, *placed, **kwargs), {name: before[name] for name in types})

    return call


def _taken(what: str, name: str, given: Any, kwargs: dict[str, Any]) -> Any:
    if given is not None:
        return given
    if name not in kwargs:
        raise TypeError(f"{what}: {name} is given neither to it nor, by keyword, to the call of the function")
    return kwargs.pop(name)


def _mesh(what: str, shardings: Any) -> Any:
    """The mesh of the context, which shardings have to be over; theirs where none is set."""
    found = config.context_mesh
    for sharding in tree.tree_leaves(shardings):
        if isinstance(sharding, NamedSharding):
            if found is not None and sharding.mesh.abstract_mesh.shape_tuple != found.abstract_mesh.shape_tuple:
                raise ValueError(f"{what}: {sharding} is over another mesh than {found}, the context's")
            found = sharding.mesh if found is None else found
    return found


def _types(what: str, mesh: Any, axes: Any, kind: AxisType) -> dict[Any, AxisType]:
    """The new type of each axis."""
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"{what}: axes names {name!r}, and the mesh has {', '.join(map(repr, mesh.axis_names))}")
    return dict.fromkeys(names, kind)


def _within(mesh: Any, types: dict[Any, AxisType]) -> list[Restoring]:
    inner = mesh.update_axis_types(types)
    return [] if config.context_mesh is None or inner == mesh else [within(inner)]


def _cast(xs: Any, types: dict[Any, AxisType]) -> Any:
    """Values whose types are over a mesh, over one with other types of axes; where they are they stay."""
    return tree.tree_map(lambda x: _cast_leaf(x, types), xs)


def _cast_leaf(x: Any, types: dict[Any, AxisType]) -> Any:
    told = get_aval(x).explicit_sharding if is_array_like(x) else None
    if told is None or not types.keys() <= set(told.mesh.axis_names):
        return x
    mesh = told.mesh.update_axis_types(types)
    return x if mesh == told.mesh else told.update(mesh=mesh).place(x)
