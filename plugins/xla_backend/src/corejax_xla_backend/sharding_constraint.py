"""`lax.with_sharding_constraint`, and the primitive `sharding_constraint` behind it.

sharding_constraint : a -> a
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    Tracer,
    abstract_eval_rules,
    as_array,
    axis_of_rule,
    backends,
    check_arguments,
    deflinear,
    impl_rules,
    leaf_names,
    tree,
    vmap_rules,
    xla_translations,
)
from corejax.extend.devices import placed
from corejax.extend.plugins import exported
from corejax.extend.types import Packed, physical_rules
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, check_fits, other_memory

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext

sharding_constraint_p = Primitive(
    "sharding_constraint",
    linear_in=(0,),
    tags=("placing", "value_types"),
    doc="Constrain its operand to a sharding over devices. Params: sharding.",
)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain arrays to shardings, in a compiled program or eagerly.

    Derivatives get the same shardings. Under `vmap`, the batch is split over its `spmd_axis_name`; without a name, the
    compiler chooses.

    Args:
        x: a pytree of arrays.
        shardings: a sharding, a `PartitionSpec` over the mesh of the context, or a pytree of these that is a prefix of
            `x`; None leaves the choice to the compiler.

    Returns:
        Values with the structure, shapes and dtypes of `x`.

    Raises:
        TypeError: a leaf is not an array, or a leaf of `shardings` is not a sharding.
        ValueError: a sharding has more dimensions than its array, or does not divide a size.
        RuntimeError: a `PartitionSpec` is passed, and the context has no mesh.
    """
    leaves, treedef = tree.tree_flatten(x)
    check_arguments("with_sharding_constraint", with_sharding_constraint, leaves, lambda: leaf_names(treedef, "x"))
    wanted = shardings_of("with_sharding_constraint: shardings", treedef, shardings)
    return tree.tree_unflatten(treedef, [constrain(leaf, to) for leaf, to in zip(leaves, wanted, strict=True)])


def constrain(x: Any, sharding: Sharding | None, what: str = "with_sharding_constraint") -> Any:
    """Constrain one value to a sharding; return it unchanged for None, and for a sharding over an empty mesh."""
    # In a program for JAX, `typeof(x).sharding` has an empty mesh outside of all meshes.
    if sharding is None or getattr(getattr(sharding, "mesh", None), "empty", False):
        return x
    x = x if isinstance(x, Tracer) else as_array(x)
    check_fits(what, sharding, x.shape)
    return sharding_constraint_p.bind(x, sharding=sharding)


def shardings_of(what: str, treedef: Any, prefix: Any) -> list[Sharding | None]:
    """Return a sharding for each leaf of a structure, from a pytree of shardings that is a prefix of it.

    Raises:
        TypeError: a leaf of the prefix is not a sharding.
        ValueError: the pytree is not a prefix, or a sharding names a memory other than its devices' default.
    """
    skeleton = _skeleton(treedef)
    try:
        places = tree.broadcast_prefix(prefix, skeleton, _is_place)
    except ValueError as error:
        raise ValueError(
            f"{what}: the shardings are not a prefix of the structure of the values, {treedef}: {error}"
        ) from None
    # Leaves are numbers. `float0` arrays, which unflattening makes, are not values of a program.
    values = [place for place, leaf in zip(places, tree.tree_leaves(skeleton), strict=True) if type(leaf) is int]
    shardings = [None if x is None else as_sharding(what, x) for x in values]
    for sharding in shardings:
        if sharding is not None and (kind := other_memory(sharding)) is not None:
            raise ValueError(
                f"{what}: memory_kind={kind!r}: programs take and return arrays in the default memory of their "
                "devices; corejax.device_put(x, sharding) moves arrays before and afterwards"
            )
    return shardings


def _skeleton(treedef: Any) -> Any:
    """Return the structure with numbers as leaves."""
    return tree.tree_unflatten(treedef, range(treedef.num_leaves))


def _is_place(x: Any) -> bool:
    """Return whether a value is a leaf of a pytree of shardings."""
    return x is None or isinstance(x, Sharding) or not tree.is_tree_node(type(x))


def as_sharding(what: str, place: Any) -> Sharding:
    """Return a sharding from a sharding, a device, or a `PartitionSpec` over the mesh of the context.

    Raises:
        TypeError: `place` is none of these. `what` names the function and argument in the message.
        RuntimeError: `place` is a `PartitionSpec`, and the context has no mesh.
    """
    if isinstance(place, Sharding):
        return place
    if is_spec(place):
        sharding: Sharding = exported("sharding.in_context")(place, what)
        return sharding
    try:
        backends.of_device(place)
    except TypeError:
        raise TypeError(
            f"{what}: expected one of corejax.devices(), or a sharding (corejax.NamedSharding(mesh, spec)), "
            f"got {place!r} of type {type(place).__name__}"
        ) from None
    return SingleDeviceSharding(place)


def settled(sharding: Sharding, ndim: int) -> Sharding:
    """Return a sharding without choices of the compiler: dimensions that the compiler may split are not split."""
    return sharding.like(sharding.tiles(ndim)) if None in sharding.dimension_axes(ndim) else sharding


def is_spec(x: Any) -> bool:
    """Return whether a value is a `PartitionSpec` of the plugin that provides meshes."""
    return type(x).__name__ == "PartitionSpec" and isinstance(x, exported("sharding.PartitionSpec") or ())


@impl_rules.register(sharding_constraint_p, device=True)
def sharding_constraint_impl(x: Any, *, sharding: Sharding) -> Any:
    """Move the array's parts to the devices that hold them."""
    if type(x) is Packed:
        return Packed(x.aval, tuple(sharding_constraint_impl(part, sharding=sharding) for part in x.parts))
    if not sharding.device_tuple:
        sharding = _over_own_devices(sharding, x)
    if not sharding.device_tuple:
        return x
    sharding = settled(sharding, x.ndim)
    if sharding.of_type(x.ndim) is not None and other_memory(sharding) is None:
        named: Any = sharding
        sharding = named.with_axes(sharding.dimension_axes(x.ndim))  # the type has an entry for each dimension
    return placed(x, backends.of_device(sharding.device_tuple[0]), sharding)


def _over_own_devices(sharding: Sharding, x: Array) -> Sharding:
    """Return a sharding over an abstract mesh as one over devices, if they can be determined; else the sharding.

    The devices are the array's own, or those of the context's mesh, or of the last mesh that arrays were put on.
    """
    place = x.device
    devices = place.device_tuple if isinstance(place, Sharding) else ()
    if len(devices) != sharding.mesh.size:
        devices = sharding.known_devices()
    return sharding.over(devices) if len(devices) == sharding.mesh.size else sharding


@abstract_eval_rules.register(sharding_constraint_p)
def sharding_constraint_type(x: ShapedArray, *, sharding: Sharding) -> ShapedArray:
    """Return the operand's type, refined by the sharding."""
    return x.refined(sharding.of_type(x.ndim))


def _transpose(ct: Any, x: Any, *, sharding: Sharding) -> list[Any]:
    return [sharding_constraint_p.bind(ct, sharding=sharding)]


deflinear(sharding_constraint_p, _transpose)


# The sharding applies to each array that stores a value; that of the words of keys has one more axis at the end.
physical_rules.register(
    sharding_constraint_p,
    lambda avals, *parts, sharding: [sharding_constraint_p.bind(part, sharding=sharding) for part in parts],
)


@vmap_rules.register(sharding_constraint_p)
def sharding_constraint_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int], *, sharding: Sharding
) -> tuple[Any, int]:
    """Split the batch over the axes that the `vmap` names; without names the compiler chooses."""
    batched = sharding.batched(dims[0], axis_of_rule().spmd)
    check_fits("vmap of with_sharding_constraint", batched, vals[0].shape)
    return sharding_constraint_p.bind(vals[0], sharding=batched), dims[0]


@xla_translations.register(sharding_constraint_p)
def sharding_constraint_translation(
    ctx: TranslationContext, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, sharding: Sharding
) -> Any:
    """Append Shardy's operation `sharding_constraint`."""
    text = ctx.sharding_text(sharding, in_avals[0].ndim)
    return ctx.op("sdy.sharding_constraint", *in_vals, out=in_avals[0], attrs=f"sharding = #sdy.sharding{text}")
