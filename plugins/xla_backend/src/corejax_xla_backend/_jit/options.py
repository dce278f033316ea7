"""The keyword arguments of `jit`: as they were given, and what they mean for the compiler."""

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
    """The default of `in_shardings` and `out_shardings`: it says nothing."""

    def __repr__(self) -> str:
        return "Unspecified"


UNSPECIFIED = Unspecified()


def specified(given: Any) -> Any:
    """Return `in_shardings` or `out_shardings` with None for what says nothing."""
    if given is UNSPECIFIED:
        return None
    return tree.tree_map(
        lambda x: None if x is UNSPECIFIED else x, given, is_leaf=lambda x: x is None or _is_sharding(x)
    )


class JitOptions(NamedTuple):
    """The keyword arguments of `jit`, as they were given; of shardings None where they say nothing."""

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

    def compile_options(self, fun: Callable[..., Any]) -> CompileOptions:
        """What they ask of the compiler, donations apart.

        Raises:
            TypeError: a device, sharding or compiler option is none.
            ValueError: they ask for several devices, or for a device and a backend, or shardings and a backend.
        """
        if self.device is not None and self.backend is not None:
            raise ValueError(f"jit of {fun_name(fun)}: give a device or a backend, not both: a device has its backend")
        placed = [name for name in ("in_shardings", "out_shardings") if leaves_of(getattr(self, name))]
        if self.backend is not None and placed:
            raise ValueError(f"jit of {fun_name(fun)}: give {placed[0]} or a backend, not both: devices have theirs")
        if self.tier not in (None, *TIERS):
            raise ValueError(f"jit of {fun_name(fun)}: tier is None, 'compiled' or 'auto', got {self.tier!r}")
        device = _one_device(fun, self.device, self.in_shardings, self.out_shardings)
        return CompileOptions(
            device,
            binds=device is not None,
            keep_unused=bool(self.keep_unused),
            flags=compiler_flags(fun_name(fun), self.compiler_options),
        )

    def shardings(self, fun: Callable[..., Any], in_tree: Any, out_tree: Any) -> tuple[list[Any], list[Any]] | None:
        """Return shardings of the leaves of arguments and results, None of those that are the compiler's choice.

        Keyword arguments have none. The result is None if no sharding over a mesh is given.

        Raises:
            TypeError: one is no sharding.
            ValueError: they are no prefix of the structure of arguments, or results.
        """
        if self.in_shardings is None and self.out_shardings is None:
            return None
        ins = self._of_arguments(fun, in_tree)
        what = f"jit of {fun_name(fun)}: out_shardings"
        outs = shardings_of(what, out_tree, self.out_shardings)
        return (ins, outs) if any(is_over_mesh(x) for x in (*ins, *outs)) else None

    def _of_arguments(self, fun: Callable[..., Any], in_tree: Any) -> list[Any]:
        args, kwargs = in_tree.children()
        given = tuple(self.in_shardings) if type(self.in_shardings) is list else self.in_shardings
        ins = shardings_of(f"jit of {fun_name(fun)}: in_shardings", args, given)
        return [*ins, *[None] * kwargs.num_leaves]

    def with_results_laid_out(self, fun: Callable[..., Any], flat: FlatFunction) -> Callable[..., Any]:
        """Return a function of leaves with results whose types say what `out_shardings` says over Explicit axes."""
        if self.out_shardings is None:
            return flat
        what = f"jit of {fun_name(fun)}: out_shardings"

        def placed(x: Any, sharding: Any) -> Any:
            if sharding is None:
                return x
            check_fits(what, sharding, get_aval(x).shape)
            return x if sharding.of_type(get_aval(x).ndim) is None else constrain(x, sharding, what)

        def laid_out(*leaves: Any) -> Sequence[Any]:
            outs = flat(*leaves)
            return [*map(placed, outs, shardings_of(what, flat.out_tree, self.out_shardings))]

        return laid_out

    def laid_out(self, fun: Callable[..., Any], in_tree: Any, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
        """Types of arguments, which say what `in_shardings` says over axes of type Explicit."""
        if self.in_shardings is None:
            return avals
        found = []
        for sharding, aval in zip(self._of_arguments(fun, in_tree), avals, strict=True):
            if sharding is not None:
                check_fits(f"jit of {fun_name(fun)}: in_shardings", sharding, aval.shape)
            refinement = None if sharding is None else sharding.of_type(aval.ndim)
            found.append(aval.refined(join_refinements(refinement, aval.refinement)))
        return found


def compiler_flags(name: str, options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Compiler options in order of their names.

    Raises:
        TypeError: they are no mapping from names to strings, numbers or booleans.
        ValueError: an effort, or a level, is none.
    """
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise TypeError(f"{name}: compiler_options is a dict of XLA's options by name, got {options!r}")
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            raise TypeError(
                f"{name}: compiler_options are strings, numbers and booleans by name, such as "
                f"{{'xla_cpu_enable_fast_math': True}}, got {key!r}: {value!r}"
            )
    checked = {key: SETTINGS[key][1](value) if key in EFFORTS else value for key, value in options.items()}
    return tuple(sorted(checked.items()))


def _one_device(fun: Callable[..., Any], device: Any, in_shardings: Any, out_shardings: Any) -> Any:
    """The device that all of them name; None where none does, or where they are about several.

    Raises:
        ValueError: they name several single devices.
    """
    if device is not None:
        sharding_device(f"jit of {fun_name(fun)}: device", device)
    found = {} if device is None else {id(device): device}
    for keyword, given in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        for leaf in leaves_of(given):
            if is_over_mesh(leaf):
                if device is not None:
                    raise ValueError(f"jit of {fun_name(fun)}: give {keyword} or a device, not both")
                return None
            one = sharding_device(f"jit of {fun_name(fun)}: {keyword}", leaf)
            found[id(one)] = one
    if len(found) > 1:
        named = ", ".join(map(str, found.values()))
        raise ValueError(
            f"jit of {fun_name(fun)}: the program runs on one device, in_shardings and others name {named}"
        )
    return next(iter(found.values()), None)


def is_over_mesh(given: Any) -> bool:
    """Whether it is about several devices: a sharding over a mesh, or a spec of one."""
    return is_spec(given) or (isinstance(given, Sharding) and not isinstance(given, SingleDeviceSharding))


def leaves_of(given: Any) -> list[Any]:
    """What of `in_shardings` or `out_shardings` says something."""
    return [] if given is None else [x for x in tree.tree_leaves(given, is_leaf=_is_sharding) if x is not None]


def _is_sharding(x: Any) -> bool:
    return hasattr(x, "device_set") or is_spec(x)


def sharding_device(what: str, given: Any) -> Any:
    """The device of a sharding over one, or the device itself.

    Raises:
        TypeError: it is neither.
        ValueError: the sharding has several devices.
    """
    devices = getattr(given, "device_set", None)
    if devices is None:
        try:
            backends.of_device(given)
        except TypeError:
            kind = type(given).__name__
            raise TypeError(
                f"{what}: expected one of corejax.devices(), or a sharding over one, got {given!r} of type {kind}"
            ) from None
        return given
    if len(devices) != 1:
        raise ValueError(f"{what}: expected one device, and {given!r} has {len(devices)}")
    return next(iter(devices))
