"""`corejax.ffi`: compiled programs that call kernels written in C++ or CUDA, without going through Python.

A kernel is a handler of the typed foreign function interface, made by the macro `XLA_FFI_DEFINE_HANDLER_SYMBOL` of the
header `xla/ffi/api/ffi.h` that `include_dir` finds, and compiled into a shared library. `register_ffi_target` gives
it a name, and then either a translation rule of your own calls it (`ctx.custom_call`), or `ffi_call` does.
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
    "(leading axes of all of them that vmap made), aliases (pairs of an operand and the result in its memory), if any."
)

ffi_call_p = Primitive("ffi_call", multiple_results=True, doc=_DOC)
effectful_ffi_call_p = Primitive("effectful_ffi_call", multiple_results=True, effects=("ffi",), doc=_DOC)

VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1) -> None:
    """Make a kernel known to XLA under a name. The same handler may be registered again.

    Args:
        name: what programs call it; one with your package's name cannot clash ("acme.scale").
        fn: the handler: a PyCapsule, or the function of a library loaded by `ctypes` (`ctypes.CDLL(path).Scale`).
        platform: `"cpu"` or `"cuda"`, that the handler was compiled for.
        api_version: of the handler; 1, the typed interface.

    Raises:
        TypeError: the handler is neither.
        ValueError: another handler has that name, or it is of another version.
    """
    if api_version != 1:
        raise ValueError(
            f"FFI target {name!r}: handlers are of API version 1, XLA's typed interface; got {api_version!r}"
        )
    from corejax_xla_backend import _jaxlib

    if isinstance(fn, ctypes._CFuncPtr):
        address = ctypes.cast(fn, ctypes.c_void_p).value
        assert address is not None
        fn = _jaxlib.capsule_of(address)
    elif type(fn).__name__ != "PyCapsule":
        raise TypeError(
            f"FFI target {name!r}: the handler is a PyCapsule or a function of a library loaded by ctypes, "
            f"got {fn!r} of type {type(fn).__name__}"
        )
    _jaxlib.register_ffi_target(name, fn, platform)


def include_dir() -> str:
    """The folder to give the compiler (`-I`), where it finds `xla/ffi/api/ffi.h`."""
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
    """A function that calls a registered kernel.

    It runs eagerly (compiled by itself) and inside `jit`. It cannot be differentiated: wrap it in `custom_jvp` or
    `custom_vjp`, or make it the translation rule of a primitive with a JVP rule.

    Args:
        target_name: name given to `register_ffi_target`.
        result_shape_dtypes: type of the result (anything with `shape` and `dtype`), or a sequence of them.
        has_side_effect: whether calls whose results nobody uses are kept.
        vmap_method: how the kernel takes a batch, of which each of several devices calls it with a part. None: it does
            not. `"sequential"`: one call for each element.
            `"expand_dims"`: one call with a leading batch axis on every operand, of size 1 where it is not batched.
            `"broadcast_all"`: the same with every operand broadcast to the batch.
        input_output_aliases: numbers of operands, and for each that of a result of its type, for which the kernel is
            given the operand's memory: it finds the operand there. Where others read the operand, too, it is a copy.

    Returns:
        `f(*operands, **attributes)`: operands are arrays, attributes static numbers, strings, booleans or NumPy
        arrays of one dimension. It gives one value, or a list where the types are a sequence.

    Raises:
        TypeError: a result type lacks shape or dtype, or an attribute is of another type.
        ValueError: the method is not one of these, or the target is no kernel's name; aliases name a result that is not
            there, or twice; at a call, an operand that is not there or of another type.
    """
    target, result_types = target_name, result_shape_dtypes
    if not isinstance(target, str) or not target or "\0" in target or target.startswith("xla_ffi_python_"):
        raise ValueError(
            f"ffi_call: a target is the name given to register_ffi_target, got {target!r} (names that begin with "
            "'xla_ffi_python_' are XLA's own, for callbacks that only it makes)"
        )
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"ffi_call of {target!r}: vmap_method is one of {VMAP_METHODS}, got {vmap_method!r}")
    several = isinstance(result_types, list | tuple)
    for each in result_types if several else [result_types]:
        if not (hasattr(each, "shape") and hasattr(each, "dtype")):
            raise TypeError(f"ffi_call of {target!r}: a result type has a shape and a dtype, got {each!r}")
    types = result_types if several else [result_types]
    out_types = tuple(ShapedArray(tuple(each.shape), np.dtype(each.dtype)) for each in types)
    primitive = effectful_ffi_call_p if has_side_effect else ffi_call_p
    aliases = _aliases(target, input_output_aliases, len(out_types))

    def called(*operands: Any, **attributes: Any) -> Any:
        given = tuple((name, _static(target, name, value)) for name, value in sorted(attributes.items()))
        values = [x if hasattr(x, "aval") else as_array(x) for x in operands]
        params = {"target": target, "attributes": given, "vmap_method": vmap_method, "batch_dims": 0}
        in_types = _types(values)
        if aliases:
            _check_aliases(target, aliases, in_types, out_types)
            params["aliases"] = aliases
        outs = primitive.bind(*values, in_types=in_types, out_types=out_types, **params)
        return outs if several else outs[0]

    return called


def _aliases(target: str, given: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Pairs of an operand and a result."""
    pairs = dict(given or {})
    whole = all(isinstance(i, int) for pair in pairs.items() for i in pair)
    if not whole or not all(0 <= k < count for k in pairs.values()) or len(set(pairs.values())) < len(pairs):
        raise ValueError(
            f"ffi_call of {target!r}: input_output_aliases are numbers of operands, each with the number of a result "
            f"of its own, less than {count}; got {given!r}"
        )
    return tuple(sorted(pairs.items()))


def _check_aliases(target: str, aliases: Any, in_types: Any, out_types: Any) -> None:
    for i, k in aliases:
        if not 0 <= i < len(in_types) or in_types[i] is not out_types[k]:
            operand = in_types[i].str_short() if 0 <= i < len(in_types) else "not there"
            raise ValueError(
                f"ffi_call of {target!r}: input_output_aliases have result {k}, {out_types[k].str_short()}, in the "
                f"memory of operand {i}, which is {operand}"
            )


def _types(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    return tuple(_kernels(get_aval(x)) for x in values)


def _kernels(aval: ShapedArray) -> ShapedArray:
    """A type as kernels know it: nothing of whether it is weak, and along which axes values differ or are split."""
    return aval.strip_weak_type().refined(None)


def _static(target: str, name: str, value: Any) -> Any:
    """An attribute as something hashable that keeps its dtype."""
    if isinstance(value, bool | int | float | str | np.generic):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return (value.dtype, tuple(value.tolist()))
    raise TypeError(
        f"ffi_call of {target!r}: attribute {name!r} has to be a static number, boolean, string or one-dimensional "
        f"NumPy array, got {type(value).__name__}; pass array data as an operand"
    )


def _attribute(value: Any) -> Any:
    return np.array(value[1], value[0]) if isinstance(value, tuple) else value


def _abstract_eval(
    *avals: ShapedArray,
    target: str,
    in_types: tuple[ShapedArray, ...],
    out_types: tuple[ShapedArray, ...],
    batch_dims: int,
    **params: Any,
) -> Sequence[ShapedArray]:
    if tuple(map(_kernels, avals)) != in_types:
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
        params.pop("aliases", None)  # types differ
    if vmap_method is None:
        raise NotImplementedError(
            f"ffi_call of {target!r} does not say how its kernel takes a batch; "
            f"give it vmap_method, one of {VMAP_METHODS[1:]}"
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
    given = {name: _attribute(value) for name, value in attributes}
    return ctx.custom_call(
        target, *in_vals, out=list(out_types), attributes=given, has_side_effect=effect,
        batch_dims=0 if effect else batch_dims, in_place=aliases,
    )  # fmt: skip


for _p in (ffi_call_p, effectful_ffi_call_p):
    abstract_eval_rules.register(_p, _abstract_eval)
    vmap_rules.register(_p, functools.partial(_vmap, primitive=_p))
    xla_translations.register(_p, functools.partial(_translation, effect=bool(_p.effects)))

__all__ = ["ffi_call", "include_dir", "register_ffi_target"]
