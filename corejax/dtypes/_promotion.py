"""The promotion lattice: what dtype an operation on several has.

The lattice and weak types are those of JEP 9407 (jax.readthedocs.io/en/latest/jep/9407-type-promotion.html).
Three of its nodes, written `i*`, `f*` and `c*`, stand for weakly typed values: they know their kind and yield
to any dtype of it.

One difference from JAX: 64-bit types need no switch. An explicit dtype is kept, and where a promotion ends at
a weak node it takes the default width (`config.default_dtype_bits`), or 64 bits if an operand has them.

`config.numpy_dtype_promotion` has no part in this: it is a check of the operands that users give.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.dtypes._names import (
    DEFAULTS,
    FROM_SHORT_NAMES,
    KINDS,
    SCALAR_KINDS,
    SHORT_NAMES,
    SMALL_FLOATS,
    SMALL_INTS,
    WIDE,
    DType,
    bool_,
    dtype,
    is_extended,
    no_numbers,
    scalar_kind,
)
from corejax.errors import CorejaxError
from corejax.messages import source_info
from corejax.settings.config import config


class TypePromotionError(CorejaxError, ValueError):
    """Two dtypes have no implicit promotion.

    Floats of 8 bits or fewer and integers of 4 or fewer mix only with their own type; under
    `config.numpy_dtype_promotion = "strict"` every type does. Cast one operand explicitly: `x.astype("float32")`.

    Attributes:
        dtypes: the dtypes that were to be combined.
    """

    def __init__(self, message: str, dtypes: tuple[DType, ...] = ()) -> None:
        super().__init__(message)
        self.dtypes = dtypes


# Each node of the lattice with those directly above it, by short name.
_ABOVE: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("u8", "i8", *(SHORT_NAMES[d] for d in SMALL_INTS)),
    "u8": ("u16", "i16"),
    "u16": ("u32", "i32"),
    "u32": ("u64", "i64"),
    "u64": ("f*",),
    "i8": ("i16",),
    "i16": ("i32",),
    "i32": ("i64",),
    "i64": ("f*",),
    "f*": ("bf16", "f16", "c*", *(SHORT_NAMES[d] for d in SMALL_FLOATS)),
    "bf16": ("f32",),
    "f16": ("f32",),
    "f32": ("f64", "c64"),
    "f64": ("c128",),
    "c*": ("c64",),
    "c64": ("c128",),
}


# Under `config.numpy_dtype_promotion = "strict"`: weakly typed values yield, and nothing else.
_STRICTLY_ABOVE: dict[str, tuple[str, ...]] = {
    "i*": ("f*", *(s for d, s in SHORT_NAMES.items() if KINDS[d] in "iu")),
    "f*": ("c*", *(s for d, s in SHORT_NAMES.items() if KINDS[d] == "f")),
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
    kind = KINDS[d]
    if not weak or kind == "b":
        return SHORT_NAMES[d]
    return {"u": "i*"}.get(kind, kind + "*")


@functools.lru_cache(maxsize=4096)
def _promote(bits: int, narrow: bool, pairs: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    """The least upper bound; `narrow` makes 64-bit types that no operand has 32 bits wide."""
    dtypes = [d for d, _ in pairs]
    all_weak = all(weak for _, weak in pairs)
    if len(set(dtypes)) == 1:
        out, weak = dtypes[0], all_weak
    else:
        bound = _least_upper_bound({_node(d, weak and not all_weak) for d, weak in pairs}, strict=False)
        if bound is None:
            raise _no_promotion(pairs)
        weak = all_weak or bound.endswith("*")
        if bound.endswith("*"):
            # Eight bytes in, eight bytes out: int64 with uint64, or int64 with a Python float, is float64.
            out = DEFAULTS[bound[0]][64 if any(d in WIDE for d in dtypes) else bits]
        else:
            out = FROM_SHORT_NAMES[bound]
        if narrow and out in WIDE and not any(d in WIDE for d in dtypes):
            out = DEFAULTS[KINDS[out]][32]
    return out, weak and out is not bool_


def _shown(pairs: tuple[tuple[DType, bool], ...]) -> str:
    names = (SHORT_NAMES[d] if is_extended(d) else d.name for d, _ in dict.fromkeys(pairs))
    weak = ("a weakly typed " if weak else "" for _, weak in dict.fromkeys(pairs))
    return " and ".join(map("".join, zip(weak, names, strict=True)))


def _no_promotion(pairs: tuple[tuple[DType, bool], ...]) -> TypePromotionError:
    opaque = next((d for d, _ in pairs if is_extended(d)), None)
    if opaque is not None:
        return TypePromotionError(
            f"{no_numbers(opaque, 'promotion')}. They mix with their own type only, here they met {_shown(pairs)}",
            tuple(d for d, _ in pairs),
        )
    strong = list(dict.fromkeys(d for d, weak in pairs if not weak)) or [d for d, _ in pairs]
    small = [d for d in strong if d in SMALL_FLOATS or d in SMALL_INTS]
    others = [d for d in strong if d not in small]
    shown = _shown(pairs)
    target = (others or [DEFAULTS["f" if any(d in SMALL_FLOATS for d in small) else "i"][32]])[0]
    return TypePromotionError(
        f"{source_info.by_caller()}no implicit promotion of {shown}: so narrow a type mixes with no other of its kind, "
        "lest precision change unseen. "
        f"Cast explicitly, for example the {small[0].name} operand with x.astype({target.name!r})",
        tuple(d for d, _ in pairs),
    )


def lattice_result_type(*pairs: tuple[DType, bool]) -> tuple[DType, bool]:
    """Least upper bound of `(dtype, weak_type)` pairs on the promotion lattice.

    Args:
        *pairs: `(dtype, weak_type)` of each operand; at least one.

    Returns:
        Dtype and weak type of the result. Bool is never weak.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    if not pairs:
        raise ValueError("lattice_result_type needs at least one (dtype, weak_type) pair")
    return _promoted("lattice_result_type", pairs)


def _promoted(name: str, pairs: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    """The result of `lattice_result_type` for operands of a public function of that name."""
    if config.numpy_dtype_promotion == "strict":
        check_strict_promotion((name,), pairs)
    bits = config.default_dtype_bits
    return _promote(bits, config.x64_compat and bits == 32, pairs)


def check_strict_promotion(names: Sequence[str], pairs: Sequence[tuple[DType, bool]]) -> None:
    """Refuse operands of several dtypes under `config.numpy_dtype_promotion = "strict"`, if they are the user's.

    Functions that promote the operands that they are called with check them so, under their own name. Promotion itself
    does not depend on the setting: what the library computes with is its own matter.

    Args:
        names: of the function that checks its operands; see `called_as`.
        pairs: `(dtype, weak_type)` of each operand.

    Raises:
        TypePromotionError: the dtypes differ, and the function was called from outside of the library.
    """
    if config.numpy_dtype_promotion != "strict" or len({d for d, _ in pairs}) == 1:
        return
    if _least_upper_bound({_node(d, weak) for d, weak in pairs}, strict=True) is not None:
        return
    if called := source_info.called_as(*names):
        raise TypePromotionError(
            f"{called}: no implicit promotion of {_shown(tuple(pairs))} under numpy_dtype_promotion='strict', "
            "where only Python's numbers yield. Cast explicitly with x.astype(...), "
            "or set numpy_dtype_promotion to 'standard'",
            tuple(d for d, _ in pairs),
        )


def promote_types(a: Any, b: Any) -> DType:
    """Dtype that an operation on `a` and `b` has; Python's `int`, `float` and `complex` are weak.

    Args:
        a: a dtype, its name, or a scalar type.
        b: as `a`.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    return _promoted("promote_types", ((dtype(a), _is_weak_scalar(a)), (dtype(b), _is_weak_scalar(b))))[0]


def _is_weak_scalar(x: Any) -> bool:
    """Whether `x` is `int`, `float` or `complex`, or a value of one."""
    if isinstance(x, np.dtype | str):
        return False
    kind = SCALAR_KINDS.get(x) if isinstance(x, type) else scalar_kind(x)
    return kind is not None and kind != "b"


def dtype_and_weak_type(x: Any) -> tuple[DType, bool]:
    """`(dtype, weak_type)` of anything `result_type` takes.

    Raises:
        TypeError: `x` neither names a dtype nor has one.
    """
    kind = SCALAR_KINDS.get(type(x))
    if kind is not None:
        return DEFAULTS[kind][config.default_dtype_bits], kind != "b"
    if isinstance(x, np.ndarray | np.dtype):
        return dtype(x), False
    aval = getattr(x, "aval", x)
    weak = getattr(aval, "weak_type", None)
    if weak is None:
        return dtype(x), _is_weak_scalar(x)
    return dtype(aval.dtype), bool(weak)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Dtype that an operation on `args` has.

    Args:
        *args: arrays, tracers, avals (anything with `aval`, or `dtype` and perhaps `weak_type`), Python
            scalars, dtypes, their names, scalar types. Python's `int`, `float` and `complex`, and values of
            them, are weak.
        return_weak_type_flag: return `(dtype, weak_type)`.

    Returns:
        The dtype. Where the result is weak it has at least the default width.

    Raises:
        TypePromotionError: there is no implicit promotion.
        ValueError: there are no arguments.
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype")
    out, weak = _promoted("result_type", tuple(map(dtype_and_weak_type, args)))
    if weak:
        out = DEFAULTS[KINDS[out]][64 if out in WIDE else config.default_dtype_bits]
    return (out, weak) if return_weak_type_flag else out
