"""Element types and how they promote: NumPy's and ml_dtypes' dtypes, weak types, JAX's promotion lattice.

`_names` has names and default widths, `_kinds` kinds (`is_integer` ...) and limits (`finfo` ...), `_extended` elements
that are not numbers, `_promotion` the lattice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.dtypes._extended import (
    element_of,
    extended,
    extended_dtype,
    has_extended,
    is_extended,
    no_numbers,
    prng_key,
)
from corejax.dtypes._kinds import (
    complex_dtype_of,
    finfo,
    iinfo,
    inexact_dtype_of,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
    issubdtype,
    itemsize_bits,
    real_dtype_of,
    scalar_type_of,
)
from corejax.dtypes._names import LONG_NAMES as LONG_NAMES
from corejax.dtypes._names import SMALL_INTS as SMALL_INTS
from corejax.dtypes._names import DType as DType
from corejax.dtypes._names import bfloat16 as bfloat16
from corejax.dtypes._names import bool_ as bool_
from corejax.dtypes._names import (
    canonicalize_dtype,
    default_complex_dtype,
    default_float_dtype,
    default_int_dtype,
    default_uint_dtype,
    dtype,
    from_short_name,
    scalar_dtype,
    short_name,
)
from corejax.dtypes._names import float0 as float0
from corejax.dtypes._promotion import (
    TypePromotionError,
    check_strict_promotion,
    dtype_and_weak_type,
    lattice_result_type,
    promote_types,
    result_type,
)

__all__ = [
    "TypePromotionError",
    "canonicalize_dtype",
    "check_strict_promotion",
    "complex_dtype_of",
    "default_complex_dtype",
    "default_float_dtype",
    "default_int_dtype",
    "default_uint_dtype",
    "dtype",
    "dtype_and_weak_type",
    "element_of",
    "extended",
    "extended_dtype",
    "finfo",
    "from_short_name",
    "has_extended",
    "iinfo",
    "inexact_dtype_of",
    "is_bool",
    "is_complex",
    "is_extended",
    "is_float",
    "is_inexact",
    "is_integer",
    "is_unsigned",
    "issubdtype",
    "itemsize_bits",
    "lattice_result_type",
    "no_numbers",
    "prng_key",
    "promote_types",
    "real_dtype_of",
    "result_type",
    "scalar_dtype",
    "scalar_type_of",
    "short_name",
]

for _public in map(globals().__getitem__, __all__):  # users know one module
    if getattr(_public, "__module__", "").startswith(__name__):
        _public.__module__ = __name__
del _public


if not TYPE_CHECKING:  # a type checker would take it for every name that there is not

    def __getattr__(name: str) -> Any:
        if name.startswith("_"):  # the import system asks for some
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from corejax.texts import no_such_name  # needed for an error only

        raise no_such_name(__name__, name, globals())
