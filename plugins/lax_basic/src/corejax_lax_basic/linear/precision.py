"""The precision of products: `Precision` for each operand, or an algorithm; and the default for all products."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import config, dtypes
from corejax.extend.messages import Restoring, called_function
from corejax.extend.programs import register_param_type

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike"]

DotDimensionNumbers = tuple[tuple[Any, Any], tuple[Any, Any]]


@register_param_type
class Precision(enum.Enum):
    """The number of passes of an accelerator over float32 operands that it multiplies in a narrower type.

    DEFAULT: one, the fastest; HIGH: about three, or tensorfloat32; HIGHEST: as many as float32 needs. CPUs always
    compute in float32. `Precision("highest")` returns the member for a name.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return None if value is not None and not isinstance(value, str) else _NAMES.get(value)

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_NAMES = {
    None: Precision.DEFAULT,
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


@register_param_type
class DotAlgorithm(NamedTuple):
    """An algorithm for products: the dtypes of operands and sums, and the number of parts.

    Attributes:
        lhs_precision_type, rhs_precision_type: dtypes that the operands are rounded to.
        accumulation_type: dtype of the sums.
        lhs_component_count, rhs_component_count, num_primitive_operations: for algorithms that split each operand into
            several narrow ones to emulate a wide type.
        allow_imprecise_accumulation: whether some sums may be computed in a narrower type.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


@register_param_type
class DotAlgorithmPreset(enum.Enum):
    """Algorithms of XLA's platforms, named after the types of operands and sums; `X3` computes three products."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Types in which the first operand may be stored; others are converted to the first type. None for any type."""
        word = self.name.partition("_")[0]
        if word in ("DEFAULT", "ANY"):
            return None
        if self.name in ("BF16_BF16_BF16", "BF16_BF16_F32"):
            return dtypes.dtype("bfloat16"), np.dtype(np.float32)
        return (np.dtype({"F16": np.float16, "F64": np.float64}.get(word, np.float32)),)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """Types in which the second operand may be stored, as `supported_lhs_types`."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """Dtype of the sums; None if it is that of the result."""
        if self.name in ("DEFAULT", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM"):
            return None
        narrow = {"F16_F16_F16": "float16", "BF16_BF16_BF16": "bfloat16", "F64_F64_F64": "float64"}
        return dtypes.dtype(narrow.get(self.name, "float32"))

    @property
    def on_cpu(self) -> bool:
        """Whether XLA for CPUs has the algorithm; for others it computes in the type of the sums."""
        return self.name in (
            *("F16_F16_F16", "F32_F32_F32", "F64_F64_F64"),
            *("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"),
        )


PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)
CanonicalPrecision = None | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset


def canonical_precision(precision: Any) -> Any:
    """Return a `precision` argument as a pair of `Precision`s, an algorithm, or None for the backend's default.

    Args:
        precision: None (`config.default_matmul_precision`), a `Precision` or its name, a pair of these, a
            `DotAlgorithm`, a `DotAlgorithmPreset` or its name.

    Raises:
        ValueError: `precision` is none of these.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithmPreset):
        return precision
    if isinstance(precision, DotAlgorithm):
        lhs, rhs, sums = map(dtypes.dtype, precision[:3])
        return DotAlgorithm(lhs, rhs, sums, *precision[3:])
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__ and precision not in _NAMES:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    if len(pair) == 2:
        pair = [p if isinstance(p, Precision) else _NAMES.get(p) if isinstance(p, str) else None for p in pair]
        if None not in pair:
            return tuple(pair)
    names = ", ".join(repr(name) for name in _NAMES if name)
    called = called_function()
    raise ValueError(
        (f"{called}: " if called else "")
        + f"precision must be None, one of {names}, a lax.Precision, a pair of these, a lax.DotAlgorithmPreset or its "
        f"name, or a lax.DotAlgorithm; got {precision!r}"
    )


def operands_precision(name: str, precision: Any) -> Any:
    """Return the `precision` argument of an operation without algorithms: a pair of `Precision`s, or None.

    If the default for all products is an algorithm, it is ignored.

    Raises:
        ValueError: `precision` is none of these.
    """
    canonical = canonical_precision(precision)
    if canonical is None or type(canonical) is tuple:
        return canonical
    if precision is None:
        return None
    raise ValueError(f"{name}: precision must be a lax.Precision or its name, or a pair of these; got {precision!r}")


@config.changed.connect
def _check_setting() -> None:
    """Refuse an update of the setting `default_matmul_precision` to a name that is no precision."""
    try:
        canonical_precision(None)
    except ValueError as error:
        raise ValueError(f"the setting default_matmul_precision: {error}") from None


def default_matmul_precision(new_val: Any) -> Restoring:
    """Set the precision of products that are given none, as a context manager.

        with corejax.default_matmul_precision("highest"):
            y = x @ w

    Args:
        new_val: the name of a `Precision` or of a `DotAlgorithmPreset`, or None.

    Raises:
        ValueError: `new_val` is none of these.
    """
    if new_val is not None:
        canonical_precision(new_val)
    return config.override(default_matmul_precision=new_val)
