"""pack, unpack: a value of a value type from the arrays that store it, and these arrays from the value.

pack[type]  : (a1, ..., an) -> type
unpack      : type -> (a1, ..., an)

All other operations on such values are decomposed into these two and operations on arrays, or are higher-order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from corejax.extend import (
    Primitive,
    ShapedArray,
    as_array,
    get_aval,
    host_value,
    impl_rules,
    instantiate,
    is_undef_primal,
    jvp_rules,
    move_batch_axis,
    transpose_rules,
    vmap_rules,
)
from corejax.extend.messages import NotDifferentiableError
from corejax.extend.types import Packed, ValueType, from_numbers, numbers_of

__all__ = ["pack", "pack_p", "unpack", "unpack_p"]


def pack(type: ValueType, *parts: Any) -> Any:
    """Return the value of a value type that some arrays store.

    Args:
        type: the type.
        *parts: arrays of the types `type.parts()`.

    Returns:
        A `Packed`, or a traced value in transformations.

    Raises:
        TypeError: `type` is not a value type, or the arrays are not those of its parts.
    """
    return pack_p.bind(*map(as_array, parts), type=type)


def unpack(x: Any) -> tuple[Any, ...]:
    """Return the arrays that store a value of a value type.

    Args:
        x: the value.

    Raises:
        TypeError: `x` is an array, or not a value at all.
    """
    return tuple(unpack_p.bind(x))


def _pack_type(*avals: ShapedArray, type: ValueType) -> ValueType:
    if not isinstance(type, ShapedArray) or type.parts() == (type,):
        raise TypeError(f"pack: type has to be a value type (a subclass of ValueType), got {type!r}")
    expected = type.parts()
    if len(avals) != len(expected):
        raise TypeError(f"pack takes {len(expected)} operands for {type!r}, got {len(avals)}")
    if [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in expected]:
        wanted, got = (", ".join(a.str_short(short_dtypes=False) for a in each) for each in (expected, avals))
        raise TypeError(f"pack: {type!r} is stored in ({wanted}), got ({got})")
    return type


def _unpack_types(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
    if len(avals) != 1:
        raise TypeError(f"unpack takes 1 operand, got {len(avals)}")
    if avals[0].parts() == (avals[0],):
        raise TypeError(f"unpack: expected a value of a value type, got {avals[0].str_short(short_dtypes=False)}")
    return avals[0].parts()


pack_p = Primitive(
    "pack",
    abstract_eval=_pack_type,
    tags=("value_types",),
    doc="Return the value of a value type that some arrays store.",
)
unpack_p = Primitive(
    "unpack",
    multiple_results=True,
    abstract_eval=_unpack_types,
    tags=("value_types",),
    doc="Return the arrays that store a value of a value type.",
)


@impl_rules.register(pack_p, device=True)
def _pack_impl(*parts: Any, type: ShapedArray) -> Any:
    if isinstance(type, ValueType):
        return Packed(type, parts)
    return from_numbers(host_value(parts[0]), type.dtype)


@impl_rules.register(unpack_p, device=True)
def _unpack_impl(x: Any) -> list[Any]:
    return list(x.parts) if isinstance(x, Packed) else [numbers_of(host_value(x))]


# -- derivatives: of types that are their own tangent types, which are linear in their parts ---------------------------


def _check_linear(name: str, type: ValueType) -> None:
    if type.tangent_type() is not type:
        raise NotDifferentiableError(
            f"{name}: values of type {type!r} have tangents of type {type.tangent_type().str_short()}, which are not "
            "those of the arrays that store them: give the operations that pack and unpack such values JVP rules"
        )


@jvp_rules.register(pack_p, symbolic_zeros=True)
def _pack_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, type: ValueType) -> tuple[Any, Any]:
    _check_linear("pack", type)
    return pack_p.bind(*primals, type=type), pack_p.bind(*map(instantiate, tangents, primals), type=type)


@jvp_rules.register(unpack_p, symbolic_zeros=True)
def _unpack_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    _check_linear("unpack", get_aval(primals[0]))  # type: ignore[arg-type]  # abstract evaluation has checked it
    return unpack_p.bind(*primals), unpack_p.bind(*tangents)


@transpose_rules.register(pack_p)
def _pack_transpose(ct: Any, *parts: Any, type: ValueType) -> list[Any]:
    cts = unpack_p.bind(ct)
    return [c if is_undef_primal(x) else None for c, x in zip(cts, parts, strict=True)]


@transpose_rules.register(unpack_p)
def _unpack_transpose(cts: Sequence[Any], x: Any) -> list[Any]:
    return [pack_p.bind(*cts, type=get_aval(x))]


# -- batching: a batch of values is a value with one more axis ---------------------------------------------------------


@vmap_rules.register(pack_p)
def _pack_vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int | None], *, type: ValueType) -> tuple[Any, int]:
    batched = type.update(shape=(axis_size, *type.shape))
    moved = (partial(move_batch_axis, axis_size), dims, batched.part_axes(0), vals)
    return pack_p.bind(*map(*moved), type=batched), 0


@vmap_rules.register(unpack_p)
def _unpack_vmap(axis_size: int, vals: Sequence[Any], dims: Sequence[int]) -> tuple[list[Any], list[int]]:
    return unpack_p.bind(*vals), list(get_aval(vals[0]).part_axes(dims[0]))
