"""The promotion lattice: the dtype of an operation on several dtypes.

The lattice and weak types are those of JEP 9407 (jax.readthedocs.io/en/latest/jep/9407-type-promotion.html).
Three of its nodes, written `i*`, `f*` and `c*`, stand for weakly typed values, which have a kind and take any dtype of
that kind.

There is one difference from JAX: 64-bit types need no switch. An explicit dtype is kept. A promotion that ends at a
weak node takes the default width (`config.default_dtype_bits`), or 64 bits if an operand has them.
`config.numpy_dtype_promotion` does not affect the lattice: it is a check of the operands that users pass.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.extend import config, dtypes
from corejax.extend.messages import CorejaxError, called_as, called_function

DType = np.dtype[Any]


class TypePromotionError(CorejaxError, ValueError):
    """Two dtypes have no implicit promotion.

    Floats of 8 bits or fewer and integers of 4 or fewer are only combined with their own type; under
    `config.numpy_dtype_promotion = "strict"` this holds for every type. Cast one operand explicitly:
    `x.astype("float32")`.

    Attributes:
        dtypes: the dtypes that were to be combined.
    """

    __module__ = "corejax.dtypes"  # its public module

    def __init__(self, message: str, dtypes: tuple[DType, ...] = ()) -> None:
        super().__init__(message)
        self.dtypes = dtypes


# Each node of the lattice, by short name, with the nodes directly above it.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("u8", "i8", *map(dtypes.short_name, dtypes.SMALL_INTS)),
    "u8": ("u16", "i16"),
    "u16": ("u32", "i32"),
    "u32": ("u64", "i64"),
    "u64": ("f*",),
    "i8": ("i16",),
    "i16": ("i32",),
    "i32": ("i64",),
    "i64": ("f*",),
    "f*": ("bf16", "f16", "c*", *map(dtypes.short_name, dtypes.SMALL_FLOATS)),
    "bf16": ("f32",),
    "f16": ("f32",),
    "f32": ("f64", "c64"),
    "f64": ("c128",),
    "c*": ("c64",),
    "c64": ("c128",),
}


# Under `config.numpy_dtype_promotion = "strict"` only weakly typed values are promoted.
_STRICTLY_ABOVE: dict[str, tuple[str, ...]] = {
    "i*": ("f*", *(dtypes.short_name(d) for d, kind in dtypes.KINDS.items() if kind in "iu")),
    "f*": ("c*", *(dtypes.short_name(d) for d, kind in dtypes.KINDS.items() if kind == "f")),
    "c*": ("c64", "c128"),
}


@functools.cache
def _upper_bounds(node: str, strict: bool) -> frozenset[str]:
    above = (_STRICTLY_ABOVE if strict else _ABOVE).get(node, ())
    return frozenset({node}).union(*(_upper_bounds(one, strict) for one in above))


def _least_upper_bound(nodes: set[str], strict: bool) -> str | None:
    common = frozenset.intersection(*(_upper_bounds(node, strict) for node in nodes))
    return next((node for node in common if common <= _upper_bounds(node, strict)), None)


def _node(d: DType, weak: bool) -> str:
    kind = dtypes.KINDS[d]
    if not weak or kind == "b":
        return dtypes.short_name(d)
    return {"u": "i*"}.get(kind, kind + "*")


@functools.lru_cache(maxsize=4096)
def _promote(bits: int, narrow: bool, pairs: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    """Return the least upper bound; if `narrow`, 64-bit results become 32 bits wide unless an operand has 64 bits."""
    operand_dtypes = [d for d, _ in pairs]
    all_weak = all(weak for _, weak in pairs)
    if len(set(operand_dtypes)) == 1:
        out, weak = operand_dtypes[0], all_weak
    else:
        bound = _least_upper_bound({_node(d, weak and not all_weak) for d, weak in pairs}, strict=False)
        if bound is None:
            raise _no_promotion(pairs)
        weak = all_weak or bound.endswith("*")
        if bound.endswith("*"):
            # 64-bit operands give 64-bit results: int64 with uint64, or int64 with a Python float, is float64.
            out = dtypes.DEFAULTS[bound[0]][64 if any(d in dtypes.WIDE for d in operand_dtypes) else bits]
        else:
            out = dtypes.from_short_name(bound)
        if narrow and out in dtypes.WIDE and not any(d in dtypes.WIDE for d in operand_dtypes):
            out = dtypes.DEFAULTS[dtypes.KINDS[out]][32]
    return out, weak and out is not dtypes.bool_


def _shown(pairs: tuple[tuple[DType, bool], ...]) -> str:
    names = (dtypes.short_name(d) if dtypes.is_extended(d) else d.name for d, _ in dict.fromkeys(pairs))
    weak = ("a weakly typed " if weak else "" for _, weak in dict.fromkeys(pairs))
    return " and ".join(map("".join, zip(weak, names, strict=True)))


def _no_promotion(pairs: tuple[tuple[DType, bool], ...]) -> TypePromotionError:
    opaque = next((d for d, _ in pairs if dtypes.is_extended(d)), None)
    if opaque is not None:
        refusal = dtypes.no_numbers(opaque, "promotion")
        return TypePromotionError(
            f"{refusal}. They can only be combined with their own type, got {_shown(pairs)}",
            tuple(d for d, _ in pairs),
        )
    strong = list(dict.fromkeys(d for d, weak in pairs if not weak)) or [d for d, _ in pairs]
    small = [d for d in strong if d in dtypes.SMALL_FLOATS or d in dtypes.SMALL_INTS]
    others = [d for d in strong if d not in small]
    prefix = f"{name}: " if (name := called_function()) else ""
    target = (others or [dtypes.DEFAULTS["f" if any(d in dtypes.SMALL_FLOATS for d in small) else "i"][32]])[0]
    return TypePromotionError(
        f"{prefix}no implicit promotion of {_shown(pairs)}: types this narrow are not promoted, "
        "so that precision does not change silently. "
        f"Cast explicitly, for example the {small[0].name} operand with x.astype({target.name!r})",
        tuple(d for d, _ in pairs),
    )


def lattice_result_type(*pairs: tuple[DType, bool]) -> tuple[DType, bool]:
    """Return the least upper bound of `(dtype, weak_type)` pairs on the promotion lattice.

    Args:
        *pairs: `(dtype, weak_type)` of each operand; at least one.

    Returns:
        Dtype and weak type of the result. Bool is never weak.

    Raises:
        TypePromotionError: the lattice has no common dtype.
    """
    if not pairs:
        raise ValueError("lattice_result_type needs at least one (dtype, weak_type) pair")
    return _promoted("lattice_result_type", pairs)


def _promoted(name: str, pairs: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    """Return the result of `lattice_result_type` for operands of a public function of that name."""
    if config.numpy_dtype_promotion == "strict":
        check_strict_promotion((name,), pairs)
    bits = config.default_dtype_bits
    return _promote(bits, config.x64_compat and bits == 32, pairs)


def check_strict_promotion(names: Sequence[str], pairs: Sequence[tuple[DType, bool]]) -> None:
    """Refuse operands of several dtypes under `config.numpy_dtype_promotion = "strict"`, if a user passed them.

    Public functions check their own operands, under their own name. Promotion itself does not depend on the setting,
    so that the library may compute with any dtypes inside.

    Args:
        names: names of the function that checks its operands; see `called_as`.
        pairs: `(dtype, weak_type)` of each operand.

    Raises:
        TypePromotionError: the dtypes differ, and the function was called from outside of the library.
    """
    if config.numpy_dtype_promotion != "strict" or len({d for d, _ in pairs}) == 1:
        return
    if _least_upper_bound({_node(d, weak) for d, weak in pairs}, strict=True) is not None:
        return
    if called := called_as(*names):
        raise TypePromotionError(
            f"{called}: no implicit promotion of {_shown(tuple(pairs))} under numpy_dtype_promotion='strict', "
            "which promotes only Python scalars. Cast explicitly with x.astype(...), "
            "or set numpy_dtype_promotion to 'standard'",
            tuple(d for d, _ in pairs),
        )


def promote_types(a: Any, b: Any) -> DType:
    """Return the dtype of an operation on `a` and `b`; Python's `int`, `float` and `complex` are weak.

    Args:
        a: a dtype, its name, or a scalar type.
        b: as `a`.

    Raises:
        TypePromotionError: the lattice has no common dtype.
    """
    return _promoted("promote_types", tuple((dtypes.dtype(x), _is_weak_scalar(x)) for x in (a, b)))[0]


def _is_weak_scalar(x: Any) -> bool:
    """Return whether `x` is `int`, `float` or `complex`, or a value of one of them."""
    if isinstance(x, type):
        return x in (int, float, complex)
    return isinstance(x, int | float | complex) and not isinstance(x, bool | np.generic)


def dtype_and_weak_type(x: Any) -> tuple[DType, bool]:
    """Return `(dtype, weak_type)` of any argument of `result_type`.

    Raises:
        TypeError: `x` neither names a dtype nor has one.
    """
    kind = dtypes.SCALAR_KINDS.get(type(x))
    if kind is not None:
        return dtypes.DEFAULTS[kind][config.default_dtype_bits], kind != "b"
    if isinstance(x, np.ndarray | np.dtype):
        return dtypes.dtype(x), False
    aval = getattr(x, "aval", x)
    weak = getattr(aval, "weak_type", None)
    if weak is None:
        return dtypes.dtype(x), _is_weak_scalar(x)
    return dtypes.dtype(aval.dtype), bool(weak)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype of an operation on `args`.

    Args:
        *args: arrays, tracers, avals (anything with `aval`, or `dtype` and perhaps `weak_type`), Python
            scalars, dtypes, their names, scalar types. Python's `int`, `float` and `complex`, and values of
            them, are weak.
        return_weak_type_flag: whether to return `(dtype, weak_type)`.

    Returns:
        The dtype. If the result is weak, it has at least the default width.

    Raises:
        TypePromotionError: the lattice has no common dtype.
        ValueError: `args` is empty.
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype")
    out, weak = _promoted("result_type", tuple(map(dtype_and_weak_type, args)))
    if weak:
        out = dtypes.DEFAULTS[dtypes.KINDS[out]][64 if out in dtypes.WIDE else config.default_dtype_bits]
    return (out, weak) if return_weak_type_flag else out
