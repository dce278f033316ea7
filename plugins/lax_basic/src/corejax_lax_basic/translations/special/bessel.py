"""StableHLO of scaled Bessel functions: order 1 is an operation of CHLO, order 0 a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.extend import dtypes, xla_translations
from corejax_lax_basic.special import _chebyshev
from corejax_lax_basic.special.bessel import bessel_i0e_p, bessel_i1e_p
from corejax_lax_basic.translations.special._formulas import Formula, at_least_float32, chlo, operations_for

if TYPE_CHECKING:
    from corejax.extend.devices import TranslationContext


def _i0e(ctx: TranslationContext, x: Any) -> Any:
    return _chebyshev.bessel_i0e(
        operations_for(x.aval.dtype), Formula(ctx, x), float(dtypes.finfo(x.aval.dtype).eps)
    ).value


xla_translations.register(bessel_i0e_p, at_least_float32(_i0e))
xla_translations.register(bessel_i1e_p, chlo("bessel_i1e"))
