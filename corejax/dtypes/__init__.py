"""Element types and how they promote: NumPy's and ml_dtypes' dtypes, weak types, JAX's promotion lattice.

`_names` has names, default widths, kinds (`is_integer` ...), limits (`finfo` ...) and elements that are not numbers,
`_promotion` the lattice.
"""

from corejax.base.texts import suggest_names as _suggest_names
from corejax.dtypes._names import LONG_NAMES as LONG_NAMES
from corejax.dtypes._names import SMALL_INTS as SMALL_INTS
from corejax.dtypes._names import DType as DType
from corejax.dtypes._names import bfloat16 as bfloat16
from corejax.dtypes._names import bool_ as bool_
from corejax.dtypes._names import canonicalize_dtype as canonicalize_dtype
from corejax.dtypes._names import complex_dtype_of as complex_dtype_of
from corejax.dtypes._names import default_complex_dtype as default_complex_dtype
from corejax.dtypes._names import default_float_dtype as default_float_dtype
from corejax.dtypes._names import default_int_dtype as default_int_dtype
from corejax.dtypes._names import default_uint_dtype as default_uint_dtype
from corejax.dtypes._names import dtype as dtype
from corejax.dtypes._names import element_of as element_of
from corejax.dtypes._names import extended as extended
from corejax.dtypes._names import extended_dtype as extended_dtype
from corejax.dtypes._names import finfo as finfo
from corejax.dtypes._names import float0 as float0
from corejax.dtypes._names import from_short_name as from_short_name
from corejax.dtypes._names import has_extended as has_extended
from corejax.dtypes._names import iinfo as iinfo
from corejax.dtypes._names import inexact_dtype_of as inexact_dtype_of
from corejax.dtypes._names import is_bool as is_bool
from corejax.dtypes._names import is_complex as is_complex
from corejax.dtypes._names import is_extended as is_extended
from corejax.dtypes._names import is_float as is_float
from corejax.dtypes._names import is_inexact as is_inexact
from corejax.dtypes._names import is_integer as is_integer
from corejax.dtypes._names import is_unsigned as is_unsigned
from corejax.dtypes._names import issubdtype as issubdtype
from corejax.dtypes._names import itemsize_bits as itemsize_bits
from corejax.dtypes._names import no_numbers as no_numbers
from corejax.dtypes._names import prng_key as prng_key
from corejax.dtypes._names import real_dtype_of as real_dtype_of
from corejax.dtypes._names import scalar_dtype as scalar_dtype
from corejax.dtypes._names import scalar_type_of as scalar_type_of
from corejax.dtypes._names import short_name as short_name
from corejax.dtypes._promotion import TypePromotionError as TypePromotionError
from corejax.dtypes._promotion import check_strict_promotion as check_strict_promotion
from corejax.dtypes._promotion import dtype_and_weak_type as dtype_and_weak_type
from corejax.dtypes._promotion import lattice_result_type as lattice_result_type
from corejax.dtypes._promotion import promote_types as promote_types
from corejax.dtypes._promotion import result_type as result_type

for _public in list(globals().values()):  # users know one module
    if getattr(_public, "__module__", "").startswith(__name__):
        _public.__module__ = __name__
del _public

_suggest_names(globals())
