"""The devices of programs over several: from meshes and shardings in the program, its arguments and its options.

A parameter of an equation names devices if it has an attribute `device_tuple`, as meshes and shardings have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Backend, BackendError, ClosedJaxpr, Jaxpr, ShapedArray
from corejax.extend.devices import CompileOptions, bound_device
from corejax.extend.plugins import exported
from corejax.extend.programs import subjaxprs
from corejax.extend.types import Packed
from corejax_xla_backend.sharding import Sharding, TiledSharding, check_fits

Tiles = np.ndarray[Any, Any]


def meshes_of(program: ClosedJaxpr | Jaxpr) -> tuple[Any, ...]:
    """Return the meshes and shardings that name devices in a program and its inner programs, each once."""
    meshes = program.memo.get("meshes")
    if meshes is None:
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        unique = dict.fromkeys(x for eqn in jaxpr.eqns if eqn.params for x in _meshes_in_params(eqn.params))
        meshes = program.memo["meshes"] = tuple(unique)
    return meshes


def _meshes_in_params(params: dict[str, Any]) -> Iterator[Any]:
    """Yield the meshes and shardings in an equation's parameters and their programs."""
    for value in params.values():
        yield from _meshes_in(value)
    for inner in subjaxprs(params):
        yield from meshes_of(inner)


def _meshes_in(value: Any) -> Iterator[Any]:
    """Yield the meshes and shardings in a parameter."""
    if hasattr(value, "device_tuple"):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _meshes_in(item)


def program_devices(program: ClosedJaxpr) -> tuple[Any, ...]:
    """Return the devices that a program names, in the order of its first mesh that has devices; empty if none has."""
    return next((tuple(x.device_tuple) for x in meshes_of(program) if x.device_tuple), ())


def named_places(closed: ClosedJaxpr, options: CompileOptions) -> list[Any]:
    """Return the shardings in the options, and the meshes and shardings in the program."""
    return [x for x in (*options.in_shardings, *options.out_shardings, *meshes_of(closed)) if x is not None]


def concrete(sharding: Any, ndim: int) -> Any:
    """Return a sharding; None if it leaves a choice to the compiler."""
    return None if sharding is None or None in sharding.dimension_axes(ndim) else sharding


def like_of(closed: ClosedJaxpr, options: CompileOptions) -> Callable[[Tiles], Sharding]:
    """Return a function from tiles to a sharding: an argument's with the same tiles, else one over a mesh."""
    candidates = [whole_over(x) for x in named_places(closed, options) if x.device_tuple == options.devices]
    inputs: list[tuple[Sharding, int]] = [
        (x if x.memory_kind is None else x.with_memory_kind(None), aval.ndim)
        for x, aval in zip(options.in_shardings, closed.in_avals, strict=False)
        if x is not None and x.device_tuple == options.devices
    ]

    def like(tiles: Tiles) -> Sharding:
        for sharding, ndim in inputs:
            if ndim == tiles.ndim - 1 and same_tiles(sharding.tiles(ndim), tiles):
                return sharding
        for sharding in candidates:
            over_mesh: Sharding = sharding.like(tiles)
            if not isinstance(over_mesh, TiledSharding):
                return over_mesh
        return TiledSharding(options.devices, tiles)

    return like


def same_tiles(one: Tiles, other: Tiles) -> bool:
    """Return whether each tile is on the same devices, in any order."""
    return one.shape == other.shape and np.array_equal(np.sort(one, -1), np.sort(other, -1))


def whole_over(place: Any) -> Sharding:
    """Return the replicated sharding over a mesh; a sharding is returned unchanged."""
    if isinstance(place, Sharding):
        return place
    replicated: Sharding = exported("sharding.NamedSharding")(place, exported("sharding.PartitionSpec")())
    return replicated


def place_program(
    closed: ClosedJaxpr, name: str, backend: Backend, options: CompileOptions, arrays: Sequence[Array]
) -> tuple[CompileOptions, Any]:
    """Return the options completed by the arguments' devices, and the one device that they are bound to, if any.

    Raises:
        ValueError: arguments are bound to different devices, to others than the program's, or to other shardings than
            the options say; or a mesh has no devices, and neither arguments nor the context determine them.
        BackendError: the devices belong to a topology, on which nothing can run.
    """
    return place_call(closed, name, options, [_place(x, backend) for x in arrays], [x.aval for x in arrays])


def _place(x: Any, backend: Backend) -> Any:
    """Return the device or sharding that an argument is bound to, or None; for a packed value, that of its parts."""
    if type(x) is Packed:
        return next((place for place in (_place(part, backend) for part in x.parts) if place is not None), None)
    return bound_device(x, backend)


def place_call(
    closed: ClosedJaxpr, name: str, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> tuple[CompileOptions, Any]:
    """Do as `place_program` for arguments of which only types and devices (None if not bound to one) are known."""
    if not options.devices and options.device is None and all(p is None for p in places):
        options = options._replace(devices=_context_devices(closed, options))
    options, device = place_at(closed, name, options, places, avals)
    if not options.devices and _count(closed, options) > 1:
        raise ValueError(
            f"jit of {name}: the program is for an abstract mesh of {_count(closed, options)} devices, and no argument "
            "is on such devices; put one there, corejax.device_put(x, corejax.NamedSharding(mesh, spec)), or call the "
            "function in the context of a mesh: with corejax.set_mesh(mesh)"
        )
    first = next(iter(options.devices), options.device)
    if getattr(first, "topology", None) is not None:
        raise BackendError(
            f"jit of {name}: a call needs attached devices, but the program is for {first!r} of a topology. "
            "jit(f).lower(types).compile() compiles for a topology"
        )
    return options, device


def _count(closed: ClosedJaxpr, options: CompileOptions) -> int:
    """Return the number of devices of a program's abstract meshes; 1 if it has none."""
    places = named_places(closed, options)
    return max((getattr(x, "mesh", x).size for x in places if not x.device_tuple), default=1)


def _context_devices(closed: ClosedJaxpr, options: CompileOptions) -> tuple[Any, ...]:
    """Return the devices of the context's mesh if a program has only abstract meshes of that size; else ()."""
    count = 1 if program_devices(closed) else _count(closed, options)
    get_mesh = exported("sharding.get_mesh") if count > 1 else None
    mesh = None if get_mesh is None else get_mesh()
    return tuple(mesh.device_tuple) if mesh is not None and mesh.size == count else ()


def names_shardings(options: CompileOptions) -> bool:
    """Return whether options have a sharding of an argument or a result."""
    return any(x is not None for x in (*options.in_shardings, *options.out_shardings))


def place_at(
    closed: ClosedJaxpr, name: str, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> tuple[CompileOptions, Any]:
    """Do what `place_program` does, from the devices or shardings that arguments are bound to (None if unbound).

    If all meshes are abstract, the returned options have shardings and no devices.
    """
    options = _with_type_shardings(closed, options, places, avals)
    is_sharded = options.devices or meshes_of(closed) or names_shardings(options)
    if not is_sharded and not any(isinstance(p, Sharding) for p in places):
        if options.device is not None:
            return options, None
        _check_one_device(name, places, avals)
        return options, next((p for p in places if p is not None), None)
    devices = options.devices or program_devices(closed) or _devices_of(places)
    options, places = _over_devices(name, options, places, devices)
    if options.device is not None and (options.device,) != devices:
        raise ValueError(
            f"jit of {name}: the program is for {options.device}, but its arguments are on devices {_ids(devices)}"
        )
    for sharding in (*options.in_shardings, *options.out_shardings):
        if sharding is not None and sharding.device_tuple != devices:
            raise ValueError(
                f"jit of {name}: {sharding} is over devices {_ids(sharding.device_tuple)}, but the program runs on "
                f"{_ids(devices)}, in this order"
            )
    requested = options.in_shardings or (None,) * len(places)
    in_shardings = tuple(
        _argument_sharding(name, functools.partial(_argument, closed, i), sharding, place, aval, devices)
        for i, (sharding, place, aval) in enumerate(zip(requested, places, avals, strict=True))
    )
    for sharding, aval in zip(options.out_shardings, closed.out_avals, strict=False):
        if sharding is not None:
            check_fits(f"jit of {name}: out_shardings", sharding, aval.shape)
    return options._replace(devices=devices, device=None, in_shardings=in_shardings), None


def _with_type_shardings(
    closed: ClosedJaxpr, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> CompileOptions:
    """Return the options with missing shardings of unbound arguments and of results taken from their types."""
    outs = closed.out_avals
    if all(aval.explicit_sharding is None for aval in (*avals, *outs)):
        return options
    ins = options.in_shardings or (None,) * len(avals)
    arguments = [
        _type_sharding(aval) if s is None and p is None else s for s, p, aval in zip(ins, places, avals, strict=True)
    ]
    out_shardings = options.out_shardings or (None,) * len(outs)
    results = [_type_sharding(aval) if s is None else s for s, aval in zip(out_shardings, outs, strict=True)]
    return options._replace(in_shardings=tuple(arguments), out_shardings=tuple(results))


def _type_sharding(aval: ShapedArray) -> Any:
    """Return the sharding in a type; None if the mesh has axes along which the compiler chooses."""
    sharding = aval.explicit_sharding
    return sharding if sharding is not None and sharding.mesh.are_all_axes_explicit else None


def _over_devices(
    name: str, options: CompileOptions, places: Sequence[Any], devices: tuple[Any, ...]
) -> tuple[CompileOptions, list[Any]]:
    """Replace shardings over abstract meshes, in options and places, by shardings over the program's devices."""

    def over(x: Any) -> Any:
        if not isinstance(x, Sharding) or x.device_tuple or not devices:
            return x
        if x.mesh.size != len(devices):
            raise ValueError(
                f"jit of {name}: {x} is over a mesh of {x.mesh.size} devices, but the program runs on {len(devices)}: "
                f"{_ids(devices)}"
            )
        return x.over(devices)

    if not devices:
        candidates = [*options.in_shardings, *options.out_shardings, *places]
        sizes = {x.mesh.size: x for x in candidates if isinstance(x, Sharding)}
        if len(sizes) > 1:
            listed = ", ".join(map(str, sizes.values()))
            raise ValueError(f"jit of {name}: its shardings are over different numbers of devices: {listed}")
    ins, outs = (tuple(map(over, shardings)) for shardings in (options.in_shardings, options.out_shardings))
    return options._replace(in_shardings=ins, out_shardings=outs), list(map(over, places))


def assign_devices(
    name: str, closed: ClosedJaxpr, options: CompileOptions, devices: Sequence[Any] | None
) -> CompileOptions:
    """Return the options of a lowered program, completed by the devices to compile for; None for the program's own.

    Raises:
        RuntimeError: the program is lowered for an abstract mesh, and `devices` is None.
        ValueError: the devices differ from those that the program is lowered for, or in their number.
    """
    if devices is None:
        if options.devices or options.device is not None or not (meshes_of(closed) or names_shardings(options)):
            return options
        raise RuntimeError(
            f"compile of {name}: it is lowered for a mesh without devices. Pass the devices: "
            "lowered.compile(device_assignment=mesh.device_tuple), of a mesh with the same axes; for devices that are "
            "not attached, corejax.experimental.topologies.get_topology_desc('8x8', 'cpu').devices"
        )
    known = options.devices or (() if options.device is None else (options.device,))
    if known and known != tuple(devices):
        raise ValueError(
            f"compile of {name}: device_assignment is {_ids(devices)}, but the program is lowered for {_ids(known)}; "
            "lower it for shardings over a corejax.sharding.AbstractMesh to leave the devices open"
        )
    options = options._replace(devices=tuple(devices), device=None)
    return place_at(closed, name, options, (None,) * len(closed.in_avals), closed.in_avals)[0]


def _devices_of(places: Sequence[Any]) -> tuple[Any, ...]:
    """Return the devices of the sharding over most devices, else the first device, else ()."""
    shardings = [p for p in places if isinstance(p, Sharding)]
    shardings.sort(key=lambda p: -len(p.device_tuple))
    if shardings:
        return tuple(shardings[0].device_tuple)
    return next(((p,) for p in places if p is not None), ())


def _argument(closed: ClosedJaxpr, number: int) -> str:
    """Describe an argument of a program for messages, by its name if the function's parameters are known."""
    info = closed.jaxpr.debug_info
    names = [] if info is None else info.arg_names()
    own = number - (len(closed.in_avals) - len(names))
    return f"argument {names[own]}" if names and own >= 0 else "a value closed over" if names else "an argument"


def _argument_sharding(
    name: str, which: Callable[[], str], sharding: Any, place: Any, aval: ShapedArray, devices: tuple[Any, ...]
) -> Any:
    """Return the sharding of an argument, from the options or from its place; None if both are None.

    Raises:
        ValueError: the argument is on other devices than the program's, or has another sharding than the options say.
    """
    if sharding is not None:
        check_fits(f"jit of {name}: in_shardings", sharding, aval.shape)
    if place is None:
        return sharding
    own = place.device_tuple if isinstance(place, Sharding) else (place,)
    if own != devices:
        raise ValueError(
            f"jit of {name}: {which()}, {aval.str_short(short_dtypes=False)}, is on devices {_ids(own)}, but the "
            f"program runs on {_ids(devices)}, in this order. Put it there: corejax.device_put(x, sharding)"
        )
    if not isinstance(place, Sharding):
        return sharding
    if sharding is not None and not sharding.is_equivalent_to(place, aval.ndim):
        raise ValueError(
            f"jit of {name}: in_shardings has {sharding} for {which()}, {aval.str_short(short_dtypes=False)}, which "
            f"is committed to {place}. Move it first (corejax.device_put), or leave the argument's sharding out"
        )
    return place


def _check_one_device(name: str, places: Sequence[Any], avals: Sequence[ShapedArray]) -> None:
    """Raise ValueError if arguments are bound to different devices."""
    first_avals: dict[Any, ShapedArray] = {}
    for place, aval in zip(places, avals, strict=True):
        if place is not None:
            first_avals.setdefault(place, aval)
    if len(first_avals) > 1:
        where = ", ".join(f"{aval.str_short(short_dtypes=False)} on {device}" for device, aval in first_avals.items())
        raise ValueError(
            f"jit of {name}: its arguments are bound to different devices: {where}. Put them on one device "
            "(corejax.device_put(x, device)); unbound arrays move to the device of the others"
        )


def _ids(devices: Sequence[Any]) -> list[Any]:
    """Return the numbers of devices, for messages."""
    return [getattr(d, "id", d) for d in devices]
