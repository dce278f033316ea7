"""`Exported`: a function as StableHLO, with the types and structures of its arguments and results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, ClassVar

from corejax.extend import ShapedArray
from corejax.extend.messages import drop_oldest, not_of_rule
from corejax.extend.types import physical_aval
from corejax_xla_backend.export import artifact, calling
from corejax_xla_backend.export.dims import SymbolicScope
from corejax_xla_backend.export.several_devices import over_mesh
from corejax_xla_backend.export.shapes import aval_at, scope_of_sizes, solve

minimum_supported_calling_convention_version = 1
maximum_supported_calling_convention_version = 2

_MOST_SIZES = 64  # for which a function with symbols keeps programs


class DisabledSafetyCheck:
    """A check that `export` or a call leaves out; made by its class methods."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The function may be called on platforms that it was not exported for: its first platform's program runs."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The function may call this kernel, which the process that loads it has to register."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The kernel, if it is one that is allowed."""
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
    """A function that was lowered to StableHLO for good. Made by `export` and `deserialize`; not to be changed.

    Attributes:
        fun_name: the function's name.
        in_tree: structure of `(args, kwargs)`, without static arguments.
        in_avals: types of its leaves.
        out_tree: structure of the result.
        out_avals: types of its leaves.
        platforms: that it can run on.
        nr_devices: how many devices it is for, each with its part.
        ordered_effects, unordered_effects: names of what it does beyond its results; of the first there are none.
        disabled_safety_checks: the checks that were left out.
        calling_convention_version: 1: `main` takes the leaves that are used, in order, and gives all results; 2: the
            same, over several devices, which those that know the first only must not call.
        module_kept_var_idx: numbers of the leaves that `main` takes.
        modules: platform -> StableHLO, in portable form; its text, where it has symbols.
        get_vjp: makes the exported vjp; None if none was exported.
        scope: of the symbols; None where there are none.
        in_tiles, out_tiles: which device has which part of each leaf, None where it was left open.
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
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
        self._of_numbers: Exported | None = None
        self._lock = threading.RLock()

    @property
    def uses_global_constants(self) -> bool:
        """Whether shapes have symbols, so that programs are made for each call's sizes."""
        return self.scope is not None

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    @cached_property
    def kept(self) -> Any:
        """The programs that calls by themselves are compiled to."""
        from corejax_xla_backend._compiled_impl import Kept

        return Kept()

    def __copy__(self) -> Exported:
        return self

    def __deepcopy__(self, memo: Any) -> Exported:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the exported function {self.fun_name} is not pickled: pickle exported.serialize(vjp_order=...), which "
            "says how many derivatives go with it, and deserialize that in the other process"
        )

    # -- programs ----------------------------------------------------------------------------------

    @property
    def mlir_module_serialized(self) -> bytes:
        """The StableHLO module of the first platform, in StableHLO's portable form; its text, where it has symbols."""
        return self.modules[self.platforms[0]]

    def mlir_module(self, serialized: bool = True) -> Any:
        """The module of the first platform: as text, or MLIR's object where `serialized` is false.

        Raises:
            ValueError: MLIR's object is asked for, and the module has symbols.
        """
        from corejax_xla_backend import _jaxlib

        if self.scope is not None:
            if not serialized:
                raise ValueError(f"the module of {self.fun_name} has symbols: there is one for each call's sizes only")
            return self.mlir_module_serialized.decode()
        module = _jaxlib.from_portable(self.mlir_module_serialized)
        return _jaxlib.module_text(module) if serialized else module

    def module_for(self, platform: str) -> bytes:
        """The module to run on a platform, in portable form.

        Raises:
            ValueError: it was not exported for that one.
        """
        if platform in self.modules:
            return self.modules[platform]
        if DisabledSafetyCheck.platform() in self.disabled_safety_checks:
            return self.mlir_module_serialized
        error = ValueError(
            f"the exported function {self.fun_name} is for {', '.join(map(repr, self.platforms))} and is called on "
            f"{platform!r}: export it with platforms={[*self.platforms, platform]!r}"
        )
        raise not_of_rule(error)

    # -- devices -----------------------------------------------------------------------------------

    @property
    def device_tuple(self) -> tuple[Any, ...]:
        """None by name: a program that calls it is for any devices, of this number.

        Raises:
            AttributeError: it is for one, as other values that are no meshes.
        """
        if self.nr_devices == 1:
            raise AttributeError(f"the exported function {self.fun_name} is for one device")
        return ()

    @property
    def size(self) -> int:
        """`nr_devices`."""
        return self.nr_devices

    @property
    def in_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding for each leaf of the arguments, None where it was left open."""
        return _in_hlo(self.in_tiles)

    @property
    def out_shardings_hlo(self) -> tuple[Any, ...]:
        """XLA's sharding for each leaf of the result, None where it was left open."""
        return _in_hlo(self.out_tiles)

    def in_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Shardings over a mesh, for each leaf of the arguments: where to put them; None where it was left open.

        Raises:
            ValueError: the mesh is of another number of devices.
        """
        return over_mesh(self.fun_name, mesh, self.nr_devices, self.in_tiles)

    def out_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """The same for the result.

        Raises:
            ValueError: the mesh is of another number of devices.
        """
        return over_mesh(self.fun_name, mesh, self.nr_devices, self.out_tiles)

    # -- calls -------------------------------------------------------------------------------------

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result, eager or under transformations: jit, vmap (one element after the other), grad.

        Raises:
            ValueError: the arguments have another structure, shape or dtype, or the platform is another one.
        """
        return calling.call(self, args, kwargs)

    def specialized(self, avals: Sequence[ShapedArray], names: Sequence[str]) -> Exported:
        """Itself, or where it has symbols the function for arguments of these types.

        Raises:
            ValueError: the types do not fit; names the argument.
        """
        if self.scope is None:
            return self
        return self._for_sizes(solve(self.fun_name, self.in_avals, avals, names, self.scope))

    def _for_sizes(self, sizes: dict[str, Any]) -> Exported:
        key = tuple(sorted(sizes.items()))
        with self._lock:
            found = self._at.pop(key, None)
            if found is None:
                found = self._made_for(sizes)
            self._at[key] = found  # the last one is the one that was used last
            drop_oldest(self._at, _MOST_SIZES)
            return found

    def _made_for(self, sizes: dict[str, Any]) -> Exported:
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

    def of_numbers(self) -> Exported:
        """The same program with the words of keys in the place of keys; itself where it has none."""
        ins, outs = (tuple(map(physical_aval, avals)) for avals in (self.in_avals, self.out_avals))
        if (ins, outs) == (self.in_avals, self.out_avals):
            return self
        with self._lock:
            if self._of_numbers is None:  # one object, by which programs know it
                self._of_numbers = replace(self, in_avals=ins, out_avals=outs, get_vjp=None)
            return self._of_numbers

    def has_vjp(self) -> bool:
        """Whether `vjp` has an answer."""
        return self.get_vjp is not None

    def vjp(self) -> Exported:
        """The function `(leaves of the arguments, cotangents of the results) -> cotangents of the arguments`, exported.

        All are flat; integers and booleans have None in place of a cotangent.

        Raises:
            ValueError: the function was loaded from an artifact without.
        """
        if self.get_vjp is None:
            raise ValueError(f"the exported function {self.fun_name} has no vjp: it was serialized without")
        with self._lock:
            if self._vjp is None:
                self._vjp = self.get_vjp()
            return self._vjp

    # -- bytes -------------------------------------------------------------------------------------

    def serialize(self, vjp_order: int = 0) -> bytes:
        """The artifact.

        Args:
            vjp_order: how often what is loaded can be differentiated.

        Raises:
            ValueError: a structure has nodes that are not registered for serialization, or there is no such vjp.
        """
        if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
            raise ValueError(f"serialize: vjp_order is a number of derivatives, 0 or more, got {vjp_order!r}")
        functions = [self]
        for _ in range(vjp_order):
            functions.append(functions[-1].vjp())
        return artifact.encode([vars(each) for each in functions], _producer())


def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """The function of an artifact. Nothing of it runs until it is called.

    Args:
        blob: what `Exported.serialize` gave, in whichever process.

    Raises:
        TypeError: it is not bytes.
        ValueError: it is no artifact, damaged, or of a version that this one does not read; says which.
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
        exported = Exported(**fields, get_vjp=_giving(exported))
    assert exported is not None
    return exported


def _in_hlo(tiles: Sequence[Any]) -> tuple[Any, ...]:
    from corejax_xla_backend import _jaxlib

    return tuple(None if each is None else _jaxlib.hlo_of_tiles(each) for each in tiles)


def _giving(exported: Exported | None) -> Callable[[], Exported] | None:
    return None if exported is None else lambda: exported


def _producer() -> dict[str, str]:
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
    found = fields["calling_convention_version"]
    if not least <= found <= most:
        raise ValueError(
            f"the artifact of {fields['fun_name']} has calling convention {found}; this corejax-xla-backend knows "
            f"{least} to {most}: upgrade it"
        )
    written, (oldest, newest) = producer.get("stablehlo", ""), _jaxlib.stablehlo_versions()
    if not _numbers(oldest) <= _numbers(written) <= _numbers(newest):
        raise ValueError(
            f"the artifact of {fields['fun_name']} is written in StableHLO {written} (by jaxlib "
            f"{producer.get('jaxlib')}); the jaxlib that is installed here reads {oldest} to {newest}: upgrade it"
        )


def _numbers(text: str) -> Sequence[int]:
    return [int(part) for part in text.split(".")]
