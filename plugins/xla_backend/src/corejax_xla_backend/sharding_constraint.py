"""`lax.with_sharding_constraint`, and the primitive `sharding_constraint` behind it.

sharding_constraint : a -> a
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from corejax.extend.types import physical_rules
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, check_fits, other_memory

sharding_constraint_p = Primitive(
    "sharding_constraint",
    linear_in=(0,),
    tags=("placing",),
    doc="Its operand, laid out over devices as a sharding says. Params: sharding.",
)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """`x` itself, laid out over devices as shardings say; in a compiled program from here on.

    Derivatives are laid out the same. Under `vmap` the batch is split over its `spmd_axis_name`, or as the compiler
    likes.

    Args:
        x: a pytree of arrays.
        shardings: a sharding, or a `PartitionSpec` over the mesh of the context, or a pytree of these that is a prefix
            of `x`; None leaves it to the compiler.

    Returns:
        Values of the structure, shapes and dtypes of `x`.

    Raises:
        TypeError: a leaf is not an array, or a sharding is none.
        ValueError: a sharding says more than an array has dimensions, or a size does not divide.
        RuntimeError: a `PartitionSpec` is given, and the context has no mesh.
    """
    leaves, treedef = tree.tree_flatten(x)
    check_arguments("with_sharding_constraint", with_sharding_constraint, leaves, lambda: leaf_names(treedef, "x"))
    wanted = shardings_of("with_sharding_constraint: shardings", treedef, shardings)
    return tree.tree_unflatten(treedef, [constrain(leaf, to) for leaf, to in zip(leaves, wanted, strict=True)])


def constrain(x: Any, sharding: Sharding | None, what: str = "with_sharding_constraint") -> Any:
    """One value, laid out as a sharding says; as it is for None."""
    if sharding is None:
        return x
    x = x if isinstance(x, Tracer) else as_array(x)
    check_fits(what, sharding, x.shape)
    return sharding_constraint_p.bind(x, sharding=sharding)


def shardings_of(what: str, treedef: Any, given: Any) -> list[Sharding | None]:
    """A sharding for each leaf of a structure, of a pytree of shardings that is a prefix of it.

    Raises:
        TypeError: one is no sharding.
        ValueError: it is no prefix, or one names a memory that is not its devices' default one.
    """
    skeleton = _skeleton(treedef)
    try:
        places = tree.broadcast_prefix(given, skeleton, _is_place)
    except ValueError as error:
        raise ValueError(f"{what}: they are no prefix of the structure of the values, {treedef}: {error}") from None
    # Leaves are numbered. `float0` arrays, which the structure itself makes, are no values of a program.
    values = [place for place, leaf in zip(places, tree.tree_leaves(skeleton), strict=True) if type(leaf) is int]
    found = [None if x is None else as_sharding(what, x) for x in values]
    for sharding in found:
        if sharding is not None and (kind := other_memory(sharding)) is not None:
            raise ValueError(
                f"{what}: memory_kind={kind!r}: programs take and give arrays in the default memory of their devices; "
                "corejax.device_put(x, sharding) moves them before and afterwards"
            )
    return found


def _skeleton(treedef: Any) -> Any:
    return tree.tree_unflatten(treedef, range(treedef.num_leaves))


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, Sharding) or not tree.is_tree_node(type(x))


def as_sharding(what: str, given: Any) -> Sharding:
    """A sharding; of a device, or of a `PartitionSpec` over the mesh of the context, too.

    Raises:
        TypeError: it is none of these; `what` says whose it is.
        RuntimeError: it is a `PartitionSpec`, and the context has no mesh.
    """
    if isinstance(given, Sharding):
        return given
    if is_spec(given):
        found: Sharding = exported("sharding.in_context")(given, what)
        return found
    try:
        backends.of_device(given)
    except TypeError:
        raise TypeError(
            f"{what}: expected one of corejax.devices(), or a sharding (corejax.NamedSharding(mesh, spec)), "
            f"got {given!r} of type {type(given).__name__}"
        ) from None
    return SingleDeviceSharding(given)


def settled(sharding: Sharding, ndim: int) -> Sharding:
    """A sharding with nothing left to choose: what the compiler may split is whole."""
    return sharding.like(sharding.tiles(ndim)) if None in sharding.dimension_axes(ndim) else sharding


def is_spec(x: Any) -> bool:
    """Whether it is a `PartitionSpec`, of the plugin that has meshes."""
    return type(x).__name__ == "PartitionSpec" and isinstance(x, exported("sharding.PartitionSpec") or ())


@impl_rules.register(sharding_constraint_p, device=True)
def sharding_constraint_impl(x: Array, *, sharding: Sharding) -> Array:
    """The array's parts put in place."""
    if not sharding.device_tuple:
        sharding = _over_own_devices(sharding, x)
    if not sharding.device_tuple:
        return x
    sharding = settled(sharding, x.ndim)
    if sharding.of_type(x.ndim) is not None and other_memory(sharding) is None:
        sharding = sharding.with_axes(sharding.dimension_axes(x.ndim))  # an entry for each dimension, as the type has
    return placed(x, backends.of_device(sharding.device_tuple[0]), sharding)


def _over_own_devices(sharding: Sharding, x: Array) -> Sharding:
    """A sharding over a mesh of any devices, over those of the array, or of a mesh with the axes; else itself.

    That is the context's mesh, or the last one that arrays were put on.
    """
    place = x.device
    devices = place.device_tuple if isinstance(place, Sharding) else ()
    if len(devices) != sharding.mesh.size:
        devices = sharding.known_devices()
    return sharding.over(devices) if len(devices) == sharding.mesh.size else sharding


@abstract_eval_rules.register(sharding_constraint_p)
def sharding_constraint_type(x: ShapedArray, *, sharding: Sharding) -> ShapedArray:
    """The operand's, which says where it is now."""
    return x.refined(sharding.of_type(x.ndim))


def _transpose(ct: Any, x: Any, *, sharding: Sharding) -> list[Any]:
    return [sharding_constraint_p.bind(ct, sharding=sharding)]


deflinear(sharding_constraint_p, _transpose)


# Of keys: the words of a key, on an axis behind theirs, are where the key is.
physical_rules.register(
    sharding_constraint_p, lambda avals, words, *, sharding: sharding_constraint_p.bind(words, sharding=sharding)
)


@vmap_rules.register(sharding_constraint_p)
def sharding_constraint_vmap(
    axis_size: int, vals: Sequence[Any], dims: Sequence[int], *, sharding: Sharding
) -> tuple[Any, int]:
    """The batch is split over the axes that the `vmap` names; without any it is the compiler's to split."""
    batched = sharding.batched(dims[0], axis_of_rule().spmd)
    check_fits("vmap of with_sharding_constraint", batched, vals[0].shape)
    return sharding_constraint_p.bind(vals[0], sharding=batched), dims[0]


@xla_translations.register(sharding_constraint_p)
def sharding_constraint_translation(
    ctx: Any, in_avals: Sequence[ShapedArray], in_vals: Sequence[Any], *, sharding: Sharding
) -> Any:
    """Shardy's own operation."""
    text = ctx.sharding_text(sharding, in_avals[0].ndim)
    return ctx.op("sdy.sharding_constraint", *in_vals, out=in_avals[0], attrs=f"sharding = #sdy.sharding{text}")
