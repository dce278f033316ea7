"""Programs over several devices: which devices a program names, and what its arguments and options add to that.

An equation's parameter names devices if it has an attribute `device_tuple`, as meshes and shardings have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.extend import Array, Backend, BackendError, ClosedJaxpr, Jaxpr, ShapedArray
from corejax.extend.devices import CompileOptions, bound_device
from corejax.extend.plugins import exported
from corejax.extend.programs import subjaxprs
from corejax_xla_backend.sharding import Sharding, TiledSharding, check_fits

Tiles = np.ndarray[Any, Any]


def meshes_of(program: ClosedJaxpr | Jaxpr) -> tuple[Any, ...]:
    """What names devices in a program and those inside of it, each once: meshes, and shardings over them."""
    found = program.memo.get("meshes")
    if found is None:
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        named = dict.fromkeys(x for eqn in jaxpr.eqns if eqn.params for x in _in_parameters(eqn.params))
        found = program.memo["meshes"] = tuple(named)
    return found  # type: ignore[no-any-return]


def _in_parameters(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        yield from _naming(value)
    for inner in subjaxprs(params):
        yield from meshes_of(inner)


def _naming(value: Any) -> Iterator[Any]:
    if hasattr(value, "device_tuple"):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _naming(item)


def program_devices(program: ClosedJaxpr) -> tuple[Any, ...]:
    """The devices that a program names, in the order of the first that does; empty where it names none."""
    return next((tuple(x.device_tuple) for x in meshes_of(program) if x.device_tuple), ())


def named_places(closed: ClosedJaxpr, options: CompileOptions) -> list[Any]:
    """Return the shardings that options name, and what names devices in a program."""
    return [x for x in (*options.in_shardings, *options.out_shardings, *meshes_of(closed)) if x is not None]


def concrete(sharding: Any, ndim: int) -> Any:
    """A sharding; None where it leaves something to the compiler."""
    return None if sharding is None or None in sharding.dimension_axes(ndim) else sharding


def like_of(closed: ClosedJaxpr, options: CompileOptions) -> Callable[[Tiles], Sharding]:
    """Return what makes a sharding of tiles: that of an argument with the same tiles, or one over a mesh."""
    over = [whole_over(x) for x in named_places(closed, options) if x.device_tuple == options.devices]
    inputs = [
        (x if x.memory_kind is None else x.with_memory_kind(None), aval.ndim)
        for x, aval in zip(options.in_shardings, closed.in_avals, strict=False)
        if x is not None and x.device_tuple == options.devices
    ]

    def like(tiles: Tiles) -> Sharding:
        for sharding, ndim in inputs:
            if ndim == tiles.ndim - 1 and same_tiles(sharding.tiles(ndim), tiles):
                return sharding
        for sharding in over:
            made = sharding.like(tiles)
            if not isinstance(made, TiledSharding):
                return made
        return TiledSharding(options.devices, tiles)

    return like


def same_tiles(one: Tiles, other: Tiles) -> bool:
    """Whether each tile is on the same devices, in whichever order those are listed."""
    return one.shape == other.shape and np.array_equal(np.sort(one, -1), np.sort(other, -1))


def whole_over(named: Any) -> Sharding:
    """A sharding over a mesh; itself if it is one."""
    if isinstance(named, Sharding):
        return named
    whole: Sharding = exported("sharding.NamedSharding")(named, exported("sharding.PartitionSpec")())
    return whole


def place_program(
    closed: ClosedJaxpr, name: str, backend: Backend, options: CompileOptions, arrays: Sequence[Array]
) -> tuple[CompileOptions, Any]:
    """Complete options by where arguments are; return them, and the one device that arguments are bound to, if any.

    Raises:
        ValueError: arguments are bound to other devices than each other, or than the program runs on; or they are not
            where the options want them; or nothing says which devices a mesh is of.
        BackendError: the devices are a topology's.
    """
    return place_call(closed, name, options, [bound_device(x, backend) for x in arrays], [x.aval for x in arrays])


def place_call(
    closed: ClosedJaxpr, name: str, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> tuple[CompileOptions, Any]:
    """Do as `place_program` for arguments of which only types and devices (None if not bound to one) are known."""
    if not options.devices and options.device is None and all(p is None for p in places):
        options = options._replace(devices=_of_context(closed, options))
    options, device = place_at(closed, name, options, places, avals)
    if not options.devices and _count(closed, options) > 1:
        raise ValueError(
            f"jit of {name}: it is written for a mesh of {_count(closed, options)} devices that does not say which, "
            "and no argument does; put one there, corejax.device_put(x, corejax.NamedSharding(mesh, spec)), or call it "
            "in a context that has the mesh: with corejax.set_mesh(mesh)"
        )
    first = next(iter(options.devices), options.device)
    if getattr(first, "topology", None) is not None:
        raise BackendError(
            f"jit of {name}: a call needs devices that are there, and it is to run on {first!r} and the others of that "
            "topology. jit(f).lower(types).compile() compiles for them"
        )
    return options, device


def _count(closed: ClosedJaxpr, options: CompileOptions) -> int:
    """How many devices a program that does not say which is for; 1 where it says nothing."""
    named = named_places(closed, options)
    return max((getattr(x, "mesh", x).size for x in named if not x.device_tuple), default=1)


def _of_context(closed: ClosedJaxpr, options: CompileOptions) -> tuple[Any, ...]:
    """The devices of the context's mesh, for a program that is for as many and does not say for which; none else."""
    count = 1 if program_devices(closed) else _count(closed, options)
    get_mesh = exported("sharding.get_mesh") if count > 1 else None
    mesh = None if get_mesh is None else get_mesh()
    return tuple(mesh.device_tuple) if mesh is not None and mesh.size == count else ()


def names_shardings(options: CompileOptions) -> bool:
    """Whether options say where an argument or a result is."""
    return any(x is not None for x in (*options.in_shardings, *options.out_shardings))


def place_at(
    closed: ClosedJaxpr, name: str, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> tuple[CompileOptions, Any]:
    """As `place_program`, of arguments that are bound to devices or shardings; None to none.

    Where all of this is about meshes without devices, the options have shardings and no devices.
    """
    options = _as_typed(closed, options, places, avals)
    several = options.devices or meshes_of(closed) or names_shardings(options)
    if not several and not any(isinstance(p, Sharding) for p in places):
        if options.device is not None:
            return options, None
        _check_one_device(name, places, avals)
        return options, next((p for p in places if p is not None), None)
    devices = options.devices or program_devices(closed) or _devices_of(places)
    options, places = _over_devices(name, options, places, devices)
    if options.device is not None and (options.device,) != devices:
        raise ValueError(f"jit of {name}: it is to run on {options.device}, and its arguments are on {_ids(devices)}")
    for sharding in (*options.in_shardings, *options.out_shardings):
        if sharding is not None and sharding.device_tuple != devices:
            raise ValueError(
                f"jit of {name}: {sharding} is over devices {_ids(sharding.device_tuple)}, and the program runs on "
                f"{_ids(devices)}, in this order"
            )
    wanted = options.in_shardings or (None,) * len(places)
    given = tuple(
        _agreed(name, lambda i=i: _argument(closed, i), sharding, place, aval, devices)  # type: ignore[misc]
        for i, (sharding, place, aval) in enumerate(zip(wanted, places, avals, strict=True))
    )
    for sharding, aval in zip(options.out_shardings, closed.out_avals, strict=False):
        if sharding is not None:
            check_fits(f"jit of {name}: out_shardings", sharding, aval.shape)
    return options._replace(devices=devices, device=None, in_shardings=given), None


def _as_typed(
    closed: ClosedJaxpr, options: CompileOptions, places: Sequence[Any], avals: Sequence[ShapedArray]
) -> CompileOptions:
    """Options that say what types say of arguments that are nowhere yet, and of results, where they do not say it."""
    outs = closed.out_avals
    if all(aval.explicit_sharding is None for aval in (*avals, *outs)):
        return options
    ins = options.in_shardings or (None,) * len(avals)
    given = [_told(aval) if s is None and p is None else s for s, p, aval in zip(ins, places, avals, strict=True)]
    known = options.out_shardings or (None,) * len(outs)
    results = [_told(aval) if s is None else s for s, aval in zip(known, outs, strict=True)]
    return options._replace(in_shardings=tuple(given), out_shardings=tuple(results))


def _told(aval: ShapedArray) -> Any:
    """The sharding that a type says; None where the compiler chooses along axes of other types."""
    sharding = aval.explicit_sharding
    return sharding if sharding is not None and sharding.mesh.are_all_axes_explicit else None


def _over_devices(
    name: str, options: CompileOptions, places: Sequence[Any], devices: tuple[Any, ...]
) -> tuple[CompileOptions, list[Any]]:
    """Shardings over meshes without devices, over the program's where those are known."""

    def over(x: Any) -> Any:
        if not isinstance(x, Sharding) or x.device_tuple or not devices:
            return x
        if x.mesh.size != len(devices):
            raise ValueError(
                f"jit of {name}: {x} is over a mesh of {x.mesh.size} devices, and the program runs on {len(devices)}: "
                f"{_ids(devices)}"
            )
        return x.over(devices)

    if not devices:
        named = [*options.in_shardings, *options.out_shardings, *places]
        sizes = {x.mesh.size: x for x in named if isinstance(x, Sharding)}
        if len(sizes) > 1:
            listed = ", ".join(map(str, sizes.values()))
            raise ValueError(f"jit of {name}: its shardings are over different numbers of devices: {listed}")
    ins, outs = (tuple(map(over, given)) for given in (options.in_shardings, options.out_shardings))
    return options._replace(in_shardings=ins, out_shardings=outs), list(map(over, places))


def assigned(name: str, closed: ClosedJaxpr, options: CompileOptions, devices: Sequence[Any] | None) -> CompileOptions:
    """Complete options of a lowered program by the devices to compile it for; if they are None, the program names them.

    Raises:
        RuntimeError: it is lowered for a mesh without devices, and none are given.
        ValueError: others are given than it is lowered for, or more, or fewer.
    """
    if devices is None:
        if options.devices or options.device is not None or not (meshes_of(closed) or names_shardings(options)):
            return options
        raise RuntimeError(
            f"compile of {name}: it is lowered for a mesh without devices. Say which they are: "
            "lowered.compile(device_assignment=mesh.device_tuple), of a mesh with the same axes; for devices that need "
            "not be there, corejax.experimental.topologies.get_topology_desc('8x8', 'cpu').devices"
        )
    known = options.devices or (() if options.device is None else (options.device,))
    if known and known != tuple(devices):
        raise ValueError(
            f"compile of {name}: device_assignment is {_ids(devices)}, and it is lowered for {_ids(known)}; lower it "
            "for shardings over a corejax.sharding.AbstractMesh to leave the devices open"
        )
    wanted = options._replace(devices=tuple(devices), device=None)
    return place_at(closed, name, wanted, (None,) * len(closed.in_avals), closed.in_avals)[0]


def _devices_of(places: Sequence[Any]) -> tuple[Any, ...]:
    found = [p for p in places if isinstance(p, Sharding)]
    found.sort(key=lambda p: -len(p.device_tuple))
    if found:
        return tuple(found[0].device_tuple)
    return next(((p,) for p in places if p is not None), ())


def _argument(closed: ClosedJaxpr, number: int) -> str:
    """An argument of a program for messages, by name where its function's parameters have any."""
    info = closed.jaxpr.debug_info
    names = [] if info is None else info.arg_names()
    own = number - (len(closed.in_avals) - len(names))
    return f"argument {names[own]}" if names and own >= 0 else "a value closed over" if names else "an argument"


def _agreed(
    name: str, which: Callable[[], str], sharding: Any, place: Any, aval: ShapedArray, devices: tuple[Any, ...]
) -> Any:
    """The sharding of an argument: what options say, or where it is; None where neither says anything."""
    if sharding is not None:
        check_fits(f"jit of {name}: in_shardings", sharding, aval.shape)
    if place is None:
        return sharding
    own = place.device_tuple if isinstance(place, Sharding) else (place,)
    if own != devices:
        raise ValueError(
            f"jit of {name}: {which()}, {aval.str_short(short_dtypes=False)}, is on devices {_ids(own)}, and the "
            f"program runs on {_ids(devices)}, in this order. Put it there: corejax.device_put(x, sharding)"
        )
    if not isinstance(place, Sharding):
        return sharding
    if sharding is not None and not sharding.is_equivalent_to(place, aval.ndim):
        raise ValueError(
            f"jit of {name}: in_shardings says {sharding} of {which()}, {aval.str_short(short_dtypes=False)}, that "
            f"is committed to {place}. Put it there before (corejax.device_put), or leave the argument's sharding out"
        )
    return place


def _check_one_device(name: str, places: Sequence[Any], avals: Sequence[ShapedArray]) -> None:
    found: dict[Any, ShapedArray] = {}
    for place, aval in zip(places, avals, strict=True):
        if place is not None:
            found.setdefault(place, aval)
    if len(found) > 1:
        where = ", ".join(f"{aval.str_short(short_dtypes=False)} on {device}" for device, aval in found.items())
        raise ValueError(
            f"jit of {name}: its arguments are bound to different devices: {where}. Put them on one "
            "(corejax.device_put(x, device)); arrays that were put on none go where the others are"
        )


def _ids(devices: Sequence[Any]) -> list[Any]:
    return [getattr(d, "id", d) for d in devices]
