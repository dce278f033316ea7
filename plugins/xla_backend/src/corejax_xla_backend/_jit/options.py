"""The keyword arguments of `jit`, and their translation to options of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from corejax.extend import FlatFunction, ShapedArray, backends, fun_name, get_aval, tree
from corejax.extend.devices import CompileOptions
from corejax.extend.types import join_refinements
from corejax_xla_backend.settings import EFFORTS, SETTINGS, TIERS
from corejax_xla_backend.sharding import Sharding, SingleDeviceSharding, check_fits
from corejax_xla_backend.sharding_constraint import constrain, is_spec, shardings_of


class Unspecified:
    """The class of `UNSPECIFIED`, the default of `in_shardings` and `out_shardings`."""

    def __repr__(self) -> str:
        return "Unspecified"


UNSPECIFIED = Unspecified()


def specified(shardings: Any) -> Any:
    """Return `in_shardings` or `out_shardings` with None in place of `UNSPECIFIED`."""
    if shardings is UNSPECIFIED:
        return None
    return tree.tree_map(
        lambda x: None if x is UNSPECIFIED else x, shardings, is_leaf=lambda x: x is None or _is_sharding(x)
    )


class JitOptions(NamedTuple):
    """The keyword arguments of `jit`, as the user passed them; unspecified shardings are None."""

    in_shardings: Any = None
    out_shardings: Any = None
    static_argnums: Any = None
    static_argnames: Any = None
    donate_argnums: Any = None
    donate_argnames: Any = None
    keep_unused: bool = False
    device: Any = None
    backend: str | None = None
    inline: bool = False
    compiler_options: Mapping[str, Any] | None = None
    tier: str | None = None
    persist: bool = False

    def compile_options(self, fun: Callable[..., Any]) -> CompileOptions:
        """Return the options for the compiler, without donations.

        Raises:
            TypeError: a device, sharding or compiler option has a wrong type.
            ValueError: the options name several single devices, a device and a backend, or shardings and a backend.
        """
        if self.device is not None and self.backend is not None:
            raise ValueError(f"jit of {fun_name(fun)}: give a device or a backend, not both: a device has its backend")
        placed = [name for name in ("in_shardings", "out_shardings") if leaves_of(getattr(self, name))]
        if self.backend is not None and placed:
            raise ValueError(
                f"jit of {fun_name(fun)}: give {placed[0]} or a backend, not both: a device has its backend"
            )
        if self.tier not in (None, *TIERS):
            raise ValueError(f"jit of {fun_name(fun)}: tier must be None, 'compiled' or 'auto', got {self.tier!r}")
        device = _one_device(fun, self.device, self.in_shardings, self.out_shardings)
        return CompileOptions(
            device,
            binds=device is not None,
            keep_unused=bool(self.keep_unused),
            flags=compiler_flags(fun_name(fun), self.compiler_options),
        )

    def shardings(self, fun: Callable[..., Any], in_tree: Any, out_tree: Any) -> tuple[list[Any], list[Any]] | None:
        """Return a sharding, or None for the compiler's choice, for each leaf of the arguments and of the results.

        Leaves of keyword arguments have None. The result is None if no option names a sharding over a mesh.

        Raises:
            TypeError: a leaf of an option is not a sharding.
            ValueError: an option's structure is not a prefix of the structure of the arguments, or results.
        """
        if self.in_shardings is None and self.out_shardings is None:
            return None
        ins = self._argument_shardings(fun, in_tree)
        what = f"jit of {fun_name(fun)}: out_shardings"
        outs = shardings_of(what, out_tree, self.out_shardings)
        return (ins, outs) if any(is_over_mesh(x) for x in (*ins, *outs)) else None

    def _argument_shardings(self, fun: Callable[..., Any], in_tree: Any) -> list[Any]:
        """Return `in_shardings` for each leaf of the arguments, None for leaves of keyword arguments."""
        args, kwargs = in_tree.children()
        shardings = tuple(self.in_shardings) if type(self.in_shardings) is list else self.in_shardings
        ins = shardings_of(f"jit of {fun_name(fun)}: in_shardings", args, shardings)
        return [*ins, *[None] * kwargs.num_leaves]

    def constrain_results(self, fun: Callable[..., Any], flat: FlatFunction) -> Callable[..., Any]:
        """Return a function of leaves that constrains its results to `out_shardings` over axes of type Explicit."""
        if self.out_shardings is None:
            return flat
        what = f"jit of {fun_name(fun)}: out_shardings"

        def constrain_one(x: Any, sharding: Any) -> Any:
            if sharding is None:
                return x
            check_fits(what, sharding, get_aval(x).shape)
            return x if sharding.of_type(get_aval(x).ndim) is None else constrain(x, sharding, what)

        def constrained(*leaves: Any) -> Sequence[Any]:
            outs = flat(*leaves)
            return [*map(constrain_one, outs, shardings_of(what, flat.out_tree, self.out_shardings))]

        return constrained

    def refine_avals(
        self, fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]
    ) -> Sequence[ShapedArray]:
        """Return the arguments' types, refined by what `in_shardings` says over axes of type Explicit."""
        if self.in_shardings is None:
            return avals
        refined = []
        for sharding, aval in zip(self._argument_shardings(fun, in_tree), avals, strict=True):
            if sharding is not None:
                check_fits(f"jit of {fun_name(fun)}: in_shardings", sharding, aval.shape)
            refinement = None if sharding is None else sharding.of_type(aval.ndim)
            refined.append(aval.refined(join_refinements(refinement, aval.refinement)))
        return refined


def compiler_flags(name: str, options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Return compiler options in order of their names.

    Raises:
        TypeError: the options are not a mapping from names to strings, numbers or booleans.
        ValueError: the value of an effort or a level is invalid.
    """
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise TypeError(f"{name}: compiler_options must be a dict of XLA's options by name, got {options!r}")
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            raise TypeError(
                f"{name}: compiler_options must map names to strings, numbers or booleans, such as "
                f"{{'xla_cpu_enable_fast_math': True}}, got {key!r}: {value!r}"
            )
    checked = {key: SETTINGS[key][1](value) if key in EFFORTS else value for key, value in options.items()}
    return tuple(sorted(checked.items()))


def _one_device(fun: Callable[..., Any], device: Any, in_shardings: Any, out_shardings: Any) -> Any:
    """Return the device that all three options name; None if none does, or if a sharding is over a mesh.

    Raises:
        ValueError: the options name several single devices.
    """
    if device is not None:
        sharding_device(f"jit of {fun_name(fun)}: device", device)
    devices = {} if device is None else {id(device): device}
    for keyword, shardings in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        for leaf in leaves_of(shardings):
            if is_over_mesh(leaf):
                if device is not None:
                    raise ValueError(f"jit of {fun_name(fun)}: give {keyword} or a device, not both")
                return None
            one = sharding_device(f"jit of {fun_name(fun)}: {keyword}", leaf)
            devices[id(one)] = one
    if len(devices) > 1:
        listed = ", ".join(map(str, devices.values()))
        raise ValueError(
            f"jit of {fun_name(fun)}: the program runs on one device, but device, in_shardings and out_shardings name "
            f"{listed}"
        )
    return next(iter(devices.values()), None)


def is_over_mesh(sharding: Any) -> bool:
    """Return whether a value is a sharding over a mesh, or a partition spec of one."""
    return is_spec(sharding) or (isinstance(sharding, Sharding) and not isinstance(sharding, SingleDeviceSharding))


def leaves_of(shardings: Any) -> list[Any]:
    """Return the leaves of `in_shardings` or `out_shardings` that are not None."""
    return [] if shardings is None else [x for x in tree.tree_leaves(shardings, is_leaf=_is_sharding) if x is not None]


def _is_sharding(x: Any) -> bool:
    return hasattr(x, "device_set") or is_spec(x)


def sharding_device(what: str, place: Any) -> Any:
    """Return the device of a single-device sharding, or the device itself.

    Args:
        what: function and argument, for messages.
        place: the sharding or device.

    Raises:
        TypeError: `place` is neither a device nor a sharding.
        ValueError: the sharding has several devices.
    """
    devices = getattr(place, "device_set", None)
    if devices is None:
        try:
            backends.of_device(place)
        except TypeError:
            kind = type(place).__name__
            raise TypeError(
                f"{what}: expected one of corejax.devices(), or a sharding over one, got {place!r} of type {kind}"
            ) from None
        return place
    if len(devices) != 1:
        raise ValueError(f"{what}: expected one device, got {place!r}, which has {len(devices)}")
    return next(iter(devices))
