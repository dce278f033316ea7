"""`corejax.ffi`: compiled programs that call kernels written in C++ or CUDA, without going through Python.

A kernel is a handler of the typed foreign function interface, defined by the macro `XLA_FFI_DEFINE_HANDLER_SYMBOL` of
the header `xla/ffi/api/ffi.h` (in `include_dir()`) and compiled into a shared library. `register_ffi_target` gives the
kernel a name. Then `ffi_call` calls it, or a translation rule of your own does (`ctx.custom_call`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    as_array,
    get_aval,
    vmap_rules,
    xla_translations,
)
from corejax_xla_backend._lowering.custom_calls import check_batch
from corejax_xla_backend._vmap_methods import all_at_once, one_by_one

_DOC = (
    "Call a kernel that is registered with XLA's foreign function interface. "
    "Params: target, in_types and out_types (types of operands and results), attributes, vmap_method, batch_dims "
    "(number of leading axes that vmap added), and optionally aliases (pairs of an operand and the result in its "
    "memory)."
)

ffi_call_p = Primitive("ffi_call", multiple_results=True, doc=_DOC)
effectful_ffi_call_p = Primitive("effectful_ffi_call", multiple_results=True, effects=("ffi",), doc=_DOC)

VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1) -> None:
    """Register a kernel with XLA under a name. The same handler may be registered again.

    Args:
        name: the kernel's name in programs; a prefix with your package's name avoids clashes ("acme.scale").
        fn: the handler: a PyCapsule, or the function of a library loaded by `ctypes` (`ctypes.CDLL(path).Scale`).
        platform: `"cpu"` or `"cuda"`, the platform that the handler is compiled for.
        api_version: the handler's API version; 1 is the typed interface.

    Raises:
        TypeError: the handler is neither a PyCapsule nor a function of `ctypes`.
        ValueError: another handler has that name, or `api_version` is not 1.
    """
    if api_version != 1:
        raise ValueError(f"FFI target {name!r}: api_version must be 1, XLA's typed interface, got {api_version!r}")
    from corejax_xla_backend import _jaxlib

    if isinstance(fn, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # has no public name
        fn = pycapsule(fn)
    elif type(fn).__name__ != "PyCapsule":
        raise TypeError(
            f"FFI target {name!r}: the handler must be a PyCapsule or a function of a library loaded by ctypes, "
            f"got {fn!r} of type {type(fn).__name__}"
        )
    _jaxlib.register_ffi_target(name, fn, platform)


def pycapsule(funcptr: Any) -> Any:
    """Return a PyCapsule around a function of a library that `ctypes` loaded, or around the address of an object."""
    from corejax_xla_backend import _jaxlib

    address = funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p).value
    if not address:
        raise ValueError(f"pycapsule: expected a function of a library, or an address, got {funcptr!r}")
    return _jaxlib.capsule_of(address)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register the type of a kernel's state, for handlers that keep an object between their stages.

    Args:
        name: the type's name, unique in the process.
        type_registration: `{"type_id": capsule}` with a PyCapsule of the address of an `XLA_FFI_TypeId`, and optionally
            `"type_info"` with one of an `XLA_FFI_TypeInfo`.
        platform: `"cpu"` or `"cuda"`.

    Raises:
        TypeError: a value is not a PyCapsule.
        ValueError: `type_id` is missing, or there are other keys.
    """
    from corejax_xla_backend import _jaxlib

    capsules = dict(type_registration)
    if not {"type_id"} <= capsules.keys() <= {"type_id", "type_info"}:
        raise ValueError(
            f"FFI type {name!r}: the registration must have the key 'type_id', and may have 'type_info', got "
            f"{sorted(capsules)}"
        )
    for key, capsule in capsules.items():
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError(f"FFI type {name!r}: {key} must be a PyCapsule, got {capsule!r}")
    _jaxlib.register_ffi_type(name, capsules, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Do nothing, for compatibility: programs that split a batch over devices split the calls of every kernel."""


def include_dir() -> str:
    """Return the folder with the header `xla/ffi/api/ffi.h`, for the compiler's option `-I`."""
    from corejax_xla_backend import _jaxlib

    return _jaxlib.include_dir()


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
) -> Callable[..., Any]:
    """Return a function that calls a registered kernel.

    The function runs eagerly (compiled by itself) and inside `jit`. It cannot be differentiated: wrap it in
    `custom_jvp` or `custom_vjp`, or make it the translation rule of a primitive with a JVP rule.

    Args:
        target_name: the name passed to `register_ffi_target`.
        result_shape_dtypes: type of the result (any object with `shape` and `dtype`), or a sequence of types.
        has_side_effect: whether the compiler keeps calls if their results are not used.
        vmap_method: how `vmap` batches the kernel. None: `vmap` raises an error. `"sequential"`: one call for each
            element. `"expand_dims"`: one call with a leading batch axis on every operand, of size 1 if the operand is
            not batched. `"broadcast_all"`: one call with every operand broadcast to the batch. Over several devices,
            each device calls the kernel with its part of the batch.
        input_output_aliases: number of an operand -> number of a result of the same type. The kernel gets the operand's
            memory, which holds the operand, for the result. If other operations read the operand, this is a copy.

    Returns:
        A function `f(*operands, **attributes)`. Operands are arrays; attributes are static numbers, strings, booleans
        or one-dimensional NumPy arrays. It returns one array, or a list if `result_shape_dtypes` is a sequence.

    Raises:
        TypeError: a result type lacks shape or dtype, or an attribute has another type.
        ValueError: `vmap_method` or the target's name is invalid, or aliases name a result that does not exist, or
            twice. At a call: aliases name an operand that does not exist or has another type.
    """
    target, result_types = target_name, result_shape_dtypes
    if not isinstance(target, str) or not target or "\0" in target or target.startswith("xla_ffi_python_"):
        raise ValueError(
            f"ffi_call: the target must be a name passed to register_ffi_target, got {target!r} (names that begin with "
            "'xla_ffi_python_' are reserved for XLA's callbacks)"
        )
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"ffi_call of {target!r}: vmap_method must be one of {VMAP_METHODS}, got {vmap_method!r}")
    several = isinstance(result_types, list | tuple)
    for each in result_types if several else [result_types]:
        if not (hasattr(each, "shape") and hasattr(each, "dtype")):
            raise TypeError(f"ffi_call of {target!r}: a result type must have a shape and a dtype, got {each!r}")
    types = result_types if several else [result_types]
    out_types = tuple(ShapedArray(tuple(each.shape), np.dtype(each.dtype)) for each in types)
    primitive = effectful_ffi_call_p if has_side_effect else ffi_call_p
    aliases = _aliases(target, input_output_aliases, len(out_types))

    def call_kernel(*operands: Any, **attributes: Any) -> Any:
        static = tuple((name, _static(target, name, value)) for name, value in sorted(attributes.items()))
        values = [x if hasattr(x, "aval") else as_array(x) for x in operands]
        params: dict[str, Any] = {"target": target, "attributes": static, "vmap_method": vmap_method, "batch_dims": 0}
        in_types = _types(values)
        if aliases:
            _check_aliases(target, aliases, in_types, out_types)
            params["aliases"] = aliases
        outs = primitive.bind(*values, in_types=in_types, out_types=out_types, **params)
        return outs if several else outs[0]

    return call_kernel


def _aliases(target: str, aliases: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Return checked pairs of an operand and a result; `count` is the number of results."""
    pairs = dict(aliases or {})
    are_numbers = all(isinstance(i, int) for pair in pairs.items() for i in pair)
    if not are_numbers or not all(0 <= k < count for k in pairs.values()) or len(set(pairs.values())) < len(pairs):
        raise ValueError(
            f"ffi_call of {target!r}: input_output_aliases must map numbers of operands to different numbers of "
            f"results less than {count}, got {aliases!r}"
        )
    return tuple(sorted(pairs.items()))


def _check_aliases(target: str, aliases: Any, in_types: Any, out_types: Any) -> None:
    """Raise ValueError if an operand does not exist or does not have the type of its result."""
    for i, k in aliases:
        if not 0 <= i < len(in_types) or in_types[i] is not out_types[k]:
            operand = f"is {in_types[i].str_short()}" if 0 <= i < len(in_types) else "does not exist"
            raise ValueError(
                f"ffi_call of {target!r}: input_output_aliases have result {k}, {out_types[k].str_short()}, in the "
                f"memory of operand {i}, which {operand}"
            )


def _types(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Return the kernel types of values."""
    return tuple(_kernel_type(get_aval(x)) for x in values)


def _kernel_type(aval: ShapedArray) -> ShapedArray:
    """Return a type without what a kernel does not see: weak type, varying axes and sharding."""
    return aval.strip_weak_type().refined(None)


def _static(target: str, name: str, value: Any) -> Any:
    """Return an attribute as a hashable value that keeps its dtype."""
    if isinstance(value, bool | int | float | str | np.generic):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return (value.dtype, tuple(value.tolist()))
    raise TypeError(
        f"ffi_call of {target!r}: attribute {name!r} has to be a static number, boolean, string or one-dimensional "
        f"NumPy array, got {type(value).__name__}; pass array data as an operand"
    )


def _attribute(value: Any) -> Any:
    """Return the attribute that `_static` made hashable."""
    return np.array(value[1], value[0]) if isinstance(value, tuple) else value


def _abstract_eval(
    *avals: ShapedArray,
    target: str,
    in_types: tuple[ShapedArray, ...],
    out_types: tuple[ShapedArray, ...],
    batch_dims: int,
    **params: Any,
) -> Sequence[ShapedArray]:
    if tuple(map(_kernel_type, avals)) != in_types:
        shown = [", ".join(a.str_short() for a in each) for each in (in_types, avals)]
        raise TypeError(f"ffi_call of {target!r}: the kernel takes ({shown[0]}), got ({shown[1]})")
    check_batch(target, [*avals, *out_types], batch_dims)
    return out_types


def _vmap(
    axis_size: int,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    *,
    primitive: Primitive,
    in_types: tuple[ShapedArray, ...],
    out_types: tuple[ShapedArray, ...],
    batch_dims: int,
    **params: Any,
) -> tuple[list[Any], list[int]]:
    target, vmap_method = params["target"], params["vmap_method"]
    if vmap_method == "expand_dims" and None in dims:
        params.pop("aliases", None)  # operands without a batch no longer have the types of their results
    if vmap_method is None:
        raise NotImplementedError(
            f"ffi_call of {target!r} does not say how to batch its kernel; pass vmap_method, one of {VMAP_METHODS[1:]}"
        )
    if vmap_method == "sequential":
        one = functools.partial(primitive.bind, in_types=in_types, out_types=out_types, batch_dims=batch_dims, **params)
        return one_by_one(one, axis_size, vals, dims, out_types)

    shared = vmap_method == "broadcast_all" or None not in dims
    params["batch_dims"] = batch_dims + 1 if shared else 0

    def bind(*operands: Any, out_types: tuple[ShapedArray, ...]) -> list[Any]:
        return list(primitive.bind(*operands, in_types=_types(operands), out_types=out_types, **params))

    return all_at_once(bind, axis_size, vals, dims, out_types, vmap_method)


def _translation(
    ctx: Any,
    in_avals: Sequence[ShapedArray],
    in_vals: Sequence[Any],
    *,
    effect: bool,
    target: str,
    out_types: tuple[ShapedArray, ...],
    attributes: Any,
    batch_dims: int,
    aliases: tuple[tuple[int, int], ...] = (),
    **params: Any,
) -> Any:
    kernel_attributes = {name: _attribute(value) for name, value in attributes}
    return ctx.custom_call(
        target, *in_vals, out=list(out_types), attributes=kernel_attributes, has_side_effect=effect,
        batch_dims=0 if effect else batch_dims, in_place=aliases,
    )  # fmt: skip


for _p in (ffi_call_p, effectful_ffi_call_p):
    abstract_eval_rules.register(_p, _abstract_eval)
    vmap_rules.register(_p, functools.partial(_vmap, primitive=_p))
    xla_translations.register(_p, functools.partial(_translation, effect=bool(_p.effects)))

__all__ = [
    "ffi_call",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
]
