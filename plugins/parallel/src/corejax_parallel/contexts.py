"""The mesh of the context: `set_mesh`, and what asks for it where a spec is given without a mesh."""

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


def check_mesh(given: Any) -> Any:
    """The value of the setting `context_mesh`: a mesh, or None.

    Raises:
        ValueError: it is neither.
    """
    if given is None or isinstance(given, Mesh | AbstractMesh):
        return None if given is not None and given.empty else given
    raise ValueError(f"context_mesh is a Mesh or None, got {given!r}")


class _SetMesh(Restoring):
    """A mesh that is the context's from now on, or for the length of a `with` block."""

    __slots__ = ("earlier", "mesh")

    def __init__(self, mesh: Any, *, now: bool) -> None:
        self.mesh = mesh
        self.earlier = config.context_mesh
        if now:
            try:
                config.update("context_mesh", mesh)
            except BaseException:  # an interrupt: nobody has what would restore it
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
        """As it was before."""
        config.update("context_mesh", self.earlier)


def within(mesh: Any) -> Restoring:
    """A mesh, with devices or without, that is the context's for the length of a `with` block."""
    return _SetMesh(mesh, now=False)


def _checked(what: str, mesh: Any) -> Any:
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{what}: expected a Mesh (corejax.make_mesh), got {mesh!r} of type {type(mesh).__name__}")
    return mesh


def set_mesh(mesh: Mesh | None) -> Restoring:
    """Make a mesh the context's, of the whole process: specs that are given without a mesh are of it.

    Args:
        mesh: the mesh; None for no mesh.

    Returns:
        A context manager, for a `with` block: after it the mesh is what it was before the call.

    Raises:
        TypeError: it is no `Mesh`.
        ValueError: an axis of it is of type Manual.
    """
    if mesh is not None and any(kind is AxisType.Manual for kind in _checked("set_mesh", mesh).axis_types):
        raise ValueError(f"set_mesh: {mesh} contains manual axes; axes are Manual in the function of a shard_map only")
    return _SetMesh(mesh, now=True)


def use_mesh(mesh: Mesh) -> Restoring:
    """As `set_mesh`, for the length of a `with` block only."""
    return within(_checked("use_mesh", mesh))


def use_abstract_mesh(mesh: AbstractMesh) -> Restoring:
    """Make axes those of the context, for the length of a `with` block: the mesh that is set, with other types of axes.

    Where none with the same axes is set, specs are of a mesh without devices: programs find out by their arguments
    which these are.

    Raises:
        TypeError: it is no `AbstractMesh`.
        ValueError: the mesh that is set is of another number of devices.
    """
    if not isinstance(mesh, AbstractMesh):
        raise TypeError(f"use_abstract_mesh: expected an AbstractMesh, got {mesh!r} of type {type(mesh).__name__}")
    current = config.context_mesh
    if current is not None and not mesh.empty and current.size != mesh.size:
        raise ValueError(f"use_abstract_mesh: {mesh} is of {mesh.size} devices, and {current}, which is set, of others")
    if isinstance(current, Mesh) and current.shape_tuple == mesh.shape_tuple:
        return within(current.update_axis_types(dict(zip(mesh.axis_names, mesh.axis_types, strict=True))))
    return within(None if mesh.empty else mesh)


@dataclass(frozen=True)
class Body:
    """Of a function of blocks, where it is traced: the mesh that it is mapped over, along which axes, and its name."""

    mesh: Any
    manual: tuple[Any, ...]
    what: str = field(compare=False)


def axes_of_body(mesh: Any, sizes: dict[Any, int], what: str = "shard_map") -> tuple[tuple[Any, int | None], ...]:
    """What is in scope in a function of blocks: the axes it is mapped over, and the mesh, which is its context's."""
    around = _body()
    outer = around.manual if around is not None and around.mesh.axis_names == mesh.axis_names else ()
    return (*sizes.items(), (Body(mesh, (*outer, *sizes), what), None))


def bodies() -> list[Body]:
    """The functions of blocks that are traced, the outermost first."""
    return [name for name, _ in axes_in_scope() if isinstance(name, Body)]


def _body() -> Body | None:
    return next(reversed(bodies()), None)


def mesh_of_body() -> Any:
    """The mesh of the `shard_map` whose function is traced; None elsewhere."""
    body = _body()
    return None if body is None else body.mesh


def get_mesh() -> Any:
    """The mesh of the context: within the function of a `shard_map` that one's; an empty `AbstractMesh` where none is
    set."""
    found = mesh_of_body() or config.context_mesh
    return AbstractMesh((), ()) if found is None else found


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh of the context; of an empty one where none is set.

    Within the function of a `shard_map` those that it is mapped over are of type `Manual`.
    """
    body = _body()
    found: AbstractMesh = get_mesh().abstract_mesh
    return found if body is None else found.update_axis_types(dict.fromkeys(body.manual, AxisType.Manual))


@unsplit_sharding.provide
def _unsplit(ndim: int) -> NamedSharding | None:
    mesh = get_abstract_mesh()
    return None if mesh.empty else NamedSharding(mesh, PartitionSpec(*[None] * ndim))


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Arrays (in a pytree) moved to where shardings say, inside of compiled functions too.

    Args:
        xs: the arrays.
        out_shardings: a sharding, or a `PartitionSpec` over the mesh of the context, or a pytree of these that is a
            prefix of `xs`.

    Returns:
        The same values.

    Raises:
        TypeError: a leaf is not an array, or a sharding is none.
        ValueError: a sharding says more than an array has dimensions, or a size does not divide.
        RuntimeError: a `PartitionSpec` is given, and the context has no mesh.
    """
    return lax.with_sharding_constraint(xs, out_shardings)


def in_context(spec: PartitionSpec, what: str) -> NamedSharding:
    """The sharding of a spec over the mesh of the context; `what` asks for it.

    Raises:
        RuntimeError: none is set.
    """
    mesh = get_mesh()
    if mesh.empty:
        raise RuntimeError(
            f"{what}: {spec} is of the axes of a mesh, and none is set. Give corejax.NamedSharding(mesh, {spec}), "
            "or set one: with corejax.set_mesh(mesh)"
        )
    return NamedSharding(mesh, spec)
