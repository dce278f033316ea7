"""The mesh of the context: `set_mesh`, `get_mesh`, and shardings from specs without a mesh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import corejax.lax as lax
from corejax.extend import config
from corejax.extend.messages import Restoring
from corejax.extend.transforms import axes_in_scope
from corejax.extend.types import unsplit_sharding
from corejax_parallel.mesh import AbstractMesh, AxisType, Mesh
from corejax_parallel.named_sharding import NamedSharding
from corejax_parallel.partition_spec import PartitionSpec


def check_mesh(value: Any) -> Any:
    """Return the value of the setting `context_mesh`: a mesh that is not empty, or None.

    Raises:
        ValueError: the value is neither a mesh nor None.
    """
    if value is None or isinstance(value, Mesh | AbstractMesh):
        return None if value is not None and value.empty else value
    raise ValueError(f"context_mesh must be a Mesh or None, got {value!r}")


class _SetMesh(Restoring):
    """A context manager that makes a mesh the context's, at once if `now` is set, else when its block is entered."""

    __slots__ = ("earlier", "mesh")

    def __init__(self, mesh: Any, *, now: bool) -> None:
        self.mesh = mesh
        self.earlier = config.context_mesh
        if now:
            try:
                config.update("context_mesh", mesh)
            except BaseException:  # an interrupt: the caller never gets the object that restores the setting
                self.restore()
                raise

    def _recreate_cm(self) -> _SetMesh:
        return _SetMesh(self.mesh, now=False)

    def __enter__(self) -> Any:
        if config.context_mesh is not self.mesh:
            self.earlier = config.context_mesh
            config.update("context_mesh", self.mesh)
        return self.mesh

    def restore(self) -> None:
        """Restore the earlier mesh."""
        config.update("context_mesh", self.earlier)


def within(mesh: Any) -> Restoring:
    """Return a context manager that makes a mesh, with or without devices, the context's within its block."""
    return _SetMesh(mesh, now=False)


def _checked(what: str, mesh: Any) -> Any:
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{what}: expected a Mesh (corejax.make_mesh), got {mesh!r} of type {type(mesh).__name__}")
    return mesh


def set_mesh(mesh: Mesh | None) -> Restoring:
    """Set the mesh of the context, for the whole process: specs that are given without a mesh refer to it.

    Args:
        mesh: the mesh; None for no mesh.

    Returns:
        A context manager; the end of its `with` block restores the mesh that was set before this call.

    Raises:
        TypeError: `mesh` is not a `Mesh`.
        ValueError: an axis of the mesh is of type Manual.
    """
    if mesh is not None and any(kind is AxisType.Manual for kind in _checked("set_mesh", mesh).axis_types):
        raise ValueError(f"set_mesh: {mesh} contains manual axes; axes are Manual in the function of a shard_map only")
    return _SetMesh(mesh, now=True)


def use_mesh(mesh: Mesh) -> Restoring:
    """Return a context manager that makes a mesh the context's within its `with` block only; see `set_mesh`."""
    return within(_checked("use_mesh", mesh))


def use_abstract_mesh(mesh: AbstractMesh) -> Restoring:
    """Return a context manager that makes an `AbstractMesh` the context's within its `with` block.

    If the current mesh has the same axes, its devices are kept, with the types of the new axes. Otherwise specs refer
    to a mesh without devices, and a program takes the devices of its arguments.

    Raises:
        TypeError: `mesh` is not an `AbstractMesh`.
        ValueError: the current mesh has another number of devices.
    """
    if not isinstance(mesh, AbstractMesh):
        raise TypeError(f"use_abstract_mesh: expected an AbstractMesh, got {mesh!r} of type {type(mesh).__name__}")
    current = config.context_mesh
    if current is not None and not mesh.empty and current.size != mesh.size:
        raise ValueError(
            f"use_abstract_mesh: {mesh} has {mesh.size} devices, but the current mesh {current} has {current.size}"
        )
    if isinstance(current, Mesh) and current.shape_tuple == mesh.shape_tuple:
        return within(current.update_axis_types(dict(zip(mesh.axis_names, mesh.axis_types, strict=True))))
    return within(None if mesh.empty else mesh)


@dataclass(frozen=True)
class Body:
    """An entry of the axes in scope while a function of blocks is traced.

    Attributes:
        mesh: the mesh of the `shard_map`.
        manual: the mapped axes, including those of enclosing functions over the same mesh.
        what: name of the `shard_map`, for messages.
    """

    mesh: Any
    manual: tuple[Any, ...]
    what: str = field(compare=False)


def axes_of_body(mesh: Any, sizes: dict[Any, int], what: str = "shard_map") -> tuple[tuple[Any, int | None], ...]:
    """Return the entries of the axes in scope in a function of blocks: the mapped axes and the `Body`."""
    enclosing = _body()
    outer = enclosing.manual if enclosing is not None and enclosing.mesh.axis_names == mesh.axis_names else ()
    return (*sizes.items(), (Body(mesh, (*outer, *sizes), what), None))


def bodies() -> list[Body]:
    """Return the functions of blocks that are being traced, the outermost first."""
    return [name for name, _ in axes_in_scope() if isinstance(name, Body)]


def _body() -> Body | None:
    return next(reversed(bodies()), None)


def mesh_of_body() -> Any:
    """Return the mesh of the innermost `shard_map` that is being traced, or None."""
    body = _body()
    return None if body is None else body.mesh


def get_mesh() -> Any:
    """Return the mesh of the context, or an empty `AbstractMesh` if none is set.

    Within the function of a `shard_map`, this is the mesh of the `shard_map`.
    """
    mesh = mesh_of_body() or config.context_mesh
    return AbstractMesh((), ()) if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """Return the `AbstractMesh` of the context's mesh; it is empty if none is set.

    Within the function of a `shard_map`, the mapped axes are of type `Manual`.
    """
    body = _body()
    mesh: AbstractMesh = get_mesh().abstract_mesh
    return mesh if body is None else mesh.update_axis_types(dict.fromkeys(body.manual, AxisType.Manual))


@unsplit_sharding.provide
def _unsplit(ndim: int) -> NamedSharding | None:
    mesh = get_abstract_mesh()
    if mesh.empty and not config.x64_compat:  # JAX's programs ask each type for its sharding
        return None
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Move arrays to other shardings, also inside compiled functions.

    Args:
        xs: a pytree of arrays.
        out_shardings: a sharding, or a `PartitionSpec` over the mesh of the context, or a pytree of these that is a
            prefix of `xs`.

    Returns:
        A pytree of arrays with the same values.

    Raises:
        TypeError: a leaf is not an array, or a sharding is neither a sharding nor a `PartitionSpec`.
        ValueError: a sharding has more entries than its array has dimensions, or a size is not divisible.
        RuntimeError: a `PartitionSpec` is given, but the context has no mesh.
    """
    return lax.with_sharding_constraint(xs, out_shardings)


def in_context(spec: PartitionSpec, what: str) -> NamedSharding:
    """Return the sharding of a spec over the mesh of the context.

    Args:
        spec: the spec.
        what: the function or argument that needs the sharding, for messages.

    Raises:
        RuntimeError: no mesh is set.
    """
    mesh = get_mesh()
    if mesh.empty:
        raise RuntimeError(
            f"{what}: {spec} names axes of a mesh, but no mesh is set. Pass corejax.NamedSharding(mesh, {spec}), or "
            "set a mesh: with corejax.set_mesh(mesh)"
        )
    return NamedSharding(mesh, spec)
