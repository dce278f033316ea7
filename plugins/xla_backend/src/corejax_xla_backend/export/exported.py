"""`Exported`: a function lowered to StableHLO, with the types and structures of its arguments and results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from corejax.extend import ShapedArray
from corejax.extend.messages import drop_oldest, not_of_rule
from corejax_xla_backend.export import artifact, calling
from corejax_xla_backend.export.dims import SymbolicScope
from corejax_xla_backend.export.several_devices import over_mesh
from corejax_xla_backend.export.shapes import aval_at, scope_of_sizes, solve
from corejax_xla_backend.structures import public

minimum_supported_calling_convention_version = 1
maximum_supported_calling_convention_version = 2

_MOST_SIZES = 64  # a function with symbolic sizes caches programs for this many sizes


class DisabledSafetyCheck:
    """A safety check that `export` or a call skips; create one by the class methods."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Allow calls on platforms that the function was not exported for, with the program of its first platform."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Allow the function to call this kernel, which the loading process has to register."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the name of the allowed kernel, or None if this is another check."""
        kind, _, target = self._text.partition(":")
        return target if kind == "custom_call" else None

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(eq=False, repr=False, kw_only=True)
class Exported:
    """A function lowered to StableHLO. Created by `export` and `deserialize`; do not modify it.

    Attributes:
        fun_name: name of the function.
        in_structure, out_structure: corejax's structures of `(args, kwargs)`, without static arguments, and of the
            result.
        in_avals: types of the arguments' leaves.
        out_avals: types of the result's leaves.
        platforms: platforms that the function can run on.
        nr_devices: number of devices that the function is partitioned over.
        ordered_effects, unordered_effects: names of the function's effects; ordered effects cannot be exported.
        disabled_safety_checks: the checks that were skipped.
        calling_convention_version: 1: `main` takes the leaves that are used, in order, and returns all results. 2: the
            same for a program over several devices, which versions that know only 1 must not call.
        module_kept_var_idx: indices of the leaves that `main` takes.
        modules: dict from platform to StableHLO in portable form, or as text if sizes are symbolic.
        get_vjp: function that returns the exported vjp; None if no vjp was exported.
        scope: the scope of the symbolic sizes, or None.
        in_tiles, out_tiles: for each leaf, the tiles of its sharding, or None if the sharding was left to the compiler.
    """

    fun_name: str
    in_structure: Any
    in_avals: tuple[ShapedArray, ...]
    out_structure: Any
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    modules: dict[str, bytes]
    unordered_effects: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    get_vjp: Callable[[], Exported] | None
    scope: SymbolicScope | None = None
    nr_devices: int = 1
    in_tiles: tuple[Any, ...] = ()
    out_tiles: tuple[Any, ...] = ()

    ordered_effects: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self.in_tiles = self.in_tiles or (None,) * len(self.in_avals)
        self.out_tiles = self.out_tiles or (None,) * len(self.out_avals)
        self._at: dict[tuple[tuple[str, int], ...], Exported] = {}
        self._vjp: Exported | None = None
        self._lock = threading.RLock()

    @property
    def in_tree(self) -> Any:
        """Structure of `(args, kwargs)`, without static arguments."""
        return public(self.in_structure)

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return public(self.out_structure)

    @property
    def uses_global_constants(self) -> bool:
        """Whether sizes are symbolic, so that a program is made for the sizes of each call."""
        return self.scope is not None

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    @cached_property
    def kept(self) -> Any:
        """The cache of the programs that eager calls are compiled to."""
        from corejax_xla_backend._compiled_impl import Kept

        return Kept()

    def __copy__(self) -> Exported:
        return self

    def __deepcopy__(self, memo: Any) -> Exported:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the exported function {self.fun_name} cannot be pickled: pickle exported.serialize(vjp_order=...), where "
            "vjp_order is the number of derivatives to include, and deserialize that in the other process"
        )

    # -- programs ----------------------------------------------------------------------------------

    @property
    def mlir_module_serialized(self) -> bytes:
        """The module of the first platform, in StableHLO's portable form, or as text if sizes are symbolic."""
        return self.modules[self.platforms[0]]

    def mlir_module(self, serialized: bool = True) -> Any:
        """Return the module of the first platform as text, or as MLIR's object if `serialized` is False.

        Raises:
            ValueError: `serialized` is False and the module has symbolic sizes.
        """
        from corejax_xla_backend import _jaxlib

        if self.scope is not None:
            if not serialized:
                raise ValueError(
                    f"the module of {self.fun_name} has symbolic sizes: MLIR modules exist for the sizes of a call only"
                )
            return self.mlir_module_serialized.decode()
        module = _jaxlib.from_portable(self.mlir_module_serialized)
        return _jaxlib.module_text(module) if serialized else module

    def module_for(self, platform: str) -> bytes:
        """Return the module to run on a platform, in portable form.

        Raises:
            ValueError: the function was not exported for the platform.
        """
        if platform in self.modules:
            return self.modules[platform]
        if DisabledSafetyCheck.platform() in self.disabled_safety_checks:
            return self.mlir_module_serialized
        error = ValueError(
            f"the exported function {self.fun_name} is for {', '.join(map(repr, self.platforms))} but was called on "
            f"{platform!r}: export it with platforms={[*self.platforms, platform]!r}"
        )
        raise not_of_rule(error)

    # -- devices -----------------------------------------------------------------------------------

    @property
    def device_tuple(self) -> tuple[Any, ...]:
        """An empty tuple: a program that calls the function may use any devices, `size` of them.

        With this attribute and `size`, an exported function over several devices counts as a mesh.

        Raises:
            AttributeError: the function is for one device, so that it is not a mesh.
        """
        if self.nr_devices == 1:
            raise AttributeError(f"the exported function {self.fun_name} is for one device")
        return ()

    @property
    def size(self) -> int:
        """The number of devices, as `nr_devices`."""
        return self.nr_devices

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding for each leaf of the arguments, or None if it was left to the compiler."""
        return _in_hlo(self.in_tiles)

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding for each leaf of the result, or None if it was left to the compiler."""
        return _in_hlo(self.out_tiles)

    def in_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Return a sharding over a mesh for each leaf of the arguments, or None if it was left to the compiler.

        Raises:
            ValueError: the mesh does not have `nr_devices` devices.
        """
        return over_mesh(self.fun_name, mesh, self.nr_devices, self.in_tiles)

    def out_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Return a sharding over a mesh for each leaf of the result, or None if it was left to the compiler.

        Raises:
            ValueError: the mesh does not have `nr_devices` devices.
        """
        return over_mesh(self.fun_name, mesh, self.nr_devices, self.out_tiles)

    # -- calls -------------------------------------------------------------------------------------

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, eagerly or under transformations: jit, grad, and vmap (which loops over the elements).

        Raises:
            ValueError: the structure, a shape or a dtype of the arguments is wrong, or the function was not exported
                for the platform.
        """
        return calling.call(self, args, kwargs)

    def specialized(self, avals: Sequence[ShapedArray], names: Sequence[str]) -> Exported:
        """Return the function specialised to arguments of these types; itself if it has no symbolic sizes.

        Raises:
            ValueError: the types do not match; the message names the argument.
        """
        if self.scope is None:
            return self
        return self._for_sizes(solve(self.fun_name, self.in_avals, avals, names, self.scope))

    def _for_sizes(self, sizes: dict[str, Any]) -> Exported:
        key = tuple(sorted(sizes.items()))
        with self._lock:
            specialized = self._at.pop(key, None)
            if specialized is None:
                specialized = self._specialize(sizes)
            self._at[key] = specialized  # at the end, so that the least recently used one is evicted
            drop_oldest(self._at, _MOST_SIZES)
            return specialized

    def _specialize(self, sizes: dict[str, Any]) -> Exported:
        from corejax_xla_backend.export.templates import module_at

        in_avals, out_avals = (
            tuple(aval_at(aval, sizes) for aval in avals) for avals in (self.in_avals, self.out_avals)
        )
        return replace(
            self,
            scope=scope_of_sizes(sizes),
            in_avals=in_avals,
            out_avals=out_avals,
            modules={p: module_at(self.fun_name, m, sizes) for p, m in self.modules.items()},
            get_vjp=None if self.get_vjp is None else lambda: self.vjp()._for_sizes(sizes),
        )

    def has_vjp(self) -> bool:
        """Return whether a vjp was exported."""
        return self.get_vjp is not None

    def vjp(self) -> Exported:
        """Return the exported function `(*arguments, *result cotangents) -> argument cotangents`, over flat leaves.

        Integers and booleans have None in place of a cotangent.

        Raises:
            ValueError: the function was loaded from an artifact without a vjp.
        """
        if self.get_vjp is None:
            raise ValueError(f"the exported function {self.fun_name} has no vjp: it was serialized without one")
        with self._lock:
            if self._vjp is None:
                self._vjp = self.get_vjp()
            return self._vjp

    # -- bytes -------------------------------------------------------------------------------------

    def serialize(self, vjp_order: int = 0) -> bytes:
        """Return the function as the bytes of an artifact.

        Args:
            vjp_order: how many times the loaded function can be differentiated.

        Raises:
            ValueError: a structure has nodes that are not registered for serialization, or this function itself was
                loaded with a smaller `vjp_order`.
        """
        if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
            raise ValueError(f"serialize: vjp_order must be an integer, 0 or more, got {vjp_order!r}")
        functions = [self]
        for _ in range(vjp_order):
            functions.append(functions[-1].vjp())
        return artifact.encode([vars(each) for each in functions], _producer())


def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """Load the function of an artifact. No code of the artifact runs until the function is called.

    Args:
        blob: bytes of `Exported.serialize`, from this or another process.

    Raises:
        TypeError: the argument is not bytes.
        ValueError: the bytes are not an artifact, are damaged, or have an unsupported version; the message says which.
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize takes the bytes of an artifact, got {blob!r} of type {type(blob).__name__}")
    functions, producer = artifact.decode(bytes(blob))
    if not functions:
        raise ValueError("the artifact has no functions")
    for fields in functions:
        _check_versions(fields, producer)
        fields["disabled_safety_checks"] = tuple(map(DisabledSafetyCheck, fields["disabled_safety_checks"]))
    exported: Exported | None = None
    for fields in reversed(functions):
        exported = Exported(**fields, get_vjp=_returning(exported))
    assert exported is not None
    return exported


def _in_hlo(tiles: Sequence[Any]) -> tuple[Any, ...]:
    from corejax_xla_backend import _jaxlib

    return tuple(None if each is None else _jaxlib.hlo_of_tiles(each) for each in tiles)


def _returning(exported: Exported | None) -> Callable[[], Exported] | None:
    return None if exported is None else lambda: exported


def _producer() -> dict[str, str]:
    from importlib.metadata import version

    from corejax_xla_backend import _jaxlib

    return {
        "corejax": version("corejax"),
        "corejax-xla-backend": version("corejax-xla-backend"),
        "jaxlib": version("jaxlib"),
        "stablehlo": _jaxlib.portable_version(),
    }


def _check_versions(fields: dict[str, Any], producer: dict[str, str]) -> None:
    from corejax_xla_backend import _jaxlib

    least, most = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    convention = fields["calling_convention_version"]
    if not least <= convention <= most:
        raise ValueError(
            f"the artifact of {fields['fun_name']} has calling convention {convention}; this corejax-xla-backend knows "
            f"{least} to {most}: upgrade it"
        )
    written, (oldest, newest) = producer.get("stablehlo", ""), _jaxlib.stablehlo_versions()
    if not _numbers(oldest) <= _numbers(written) <= _numbers(newest):
        raise ValueError(
            f"the artifact of {fields['fun_name']} is written in StableHLO {written} (by jaxlib "
            f"{producer.get('jaxlib')}); the installed jaxlib reads {oldest} to {newest}: upgrade it"
        )


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]
