"""`sharding.auto_axes` and `explicit_axes`: run a function with another type for some axes of the context's mesh.

The types of arguments and results are converted to a mesh with these axis types; the values are not moved.
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
    """Run a function with axes of the mesh as Auto axes, and reshard its result.

    Args:
        f: the function. If omitted, the result is a decorator.
        axes: names of the axes; all axes of the mesh unless given.
        out_sharding: sharding of the results: a sharding or a `PartitionSpec`, or a pytree of these that is a prefix of
            the result. If it is omitted, each call must pass `out_sharding` by keyword.

    Returns:
        The wrapped function. If no mesh is set and no sharding has one, it calls `f` without resharding its result.

    Raises:
        TypeError: `out_sharding` is passed neither here nor to the call.
        ValueError: the mesh does not have an axis, or a sharding is over another mesh than the context's.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = _sharding_argument("auto_axes", "out_sharding", out_sharding, kwargs)
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
    """Run a function with axes of the context's mesh as Explicit axes, on resharded arguments.

    Args:
        f: the function. If omitted, the result is a decorator.
        axes: names of the axes; all axes of the mesh unless given.
        in_sharding: sharding of the positional arguments: a sharding or a `PartitionSpec`, or a pytree of these that is
            a prefix of the tuple of arguments. If it is omitted, each call must pass `in_sharding` by keyword.

    Returns:
        The wrapped function.

    Raises:
        TypeError: `in_sharding` is passed neither here nor to the call.
        ValueError: no mesh is set, the mesh does not have an axis, or a sharding is over another mesh.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = _sharding_argument("explicit_axes", "in_sharding", in_sharding, kwargs)
        mesh = _mesh("explicit_axes", wanted)
        if config.context_mesh is None:
            raise ValueError("explicit_axes: no mesh is set; set one: with corejax.set_mesh(mesh)")
        types = _types("explicit_axes", mesh, axes, AxisType.Explicit)
        before = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        placed = _cast(run_within(_within(mesh, types), reshard, args, wanted), types)
        return _cast(run_within(_within(mesh, types), f, *placed, **kwargs), {name: before[name] for name in types})

    return call


def _sharding_argument(what: str, name: str, value: Any, kwargs: dict[str, Any]) -> Any:
    if value is not None:
        return value
    if name not in kwargs:
        raise TypeError(f"{what}: {name} is given neither to it nor, by keyword, to the call of the function")
    return kwargs.pop(name)


def _mesh(what: str, shardings: Any) -> Any:
    """Return the mesh of the context, or of the shardings if none is set; raise ValueError if they differ."""
    mesh = config.context_mesh
    for sharding in tree.tree_leaves(shardings):
        if isinstance(sharding, NamedSharding):
            if mesh is not None and sharding.mesh.abstract_mesh.shape_tuple != mesh.abstract_mesh.shape_tuple:
                raise ValueError(f"{what}: {sharding} is over another mesh than {mesh}, the context's")
            mesh = sharding.mesh if mesh is None else mesh
    return mesh


def _types(what: str, mesh: Any, axes: Any, kind: AxisType) -> dict[Any, AxisType]:
    """Return the new type of each axis, as a dict."""
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(f"{what}: axes names {name!r}, but the mesh has {', '.join(map(repr, mesh.axis_names))}")
    return dict.fromkeys(names, kind)


def _within(mesh: Any, types: dict[Any, AxisType]) -> list[Restoring]:
    inner = mesh.update_axis_types(types)
    return [] if config.context_mesh is None or inner == mesh else [within(inner)]


def _cast(xs: Any, types: dict[Any, AxisType]) -> Any:
    """Convert the explicit shardings of values' types to other axis types, without moving the values."""
    return tree.tree_map(lambda x: _cast_leaf(x, types), xs)


def _cast_leaf(x: Any, types: dict[Any, AxisType]) -> Any:
    sharding = get_aval(x).explicit_sharding if is_array_like(x) else None
    if sharding is None or not types.keys() <= set(sharding.mesh.axis_names):
        return x
    mesh = sharding.mesh.update_axis_types(types)
    return x if mesh == sharding.mesh else sharding.update(mesh=mesh).place(x)
