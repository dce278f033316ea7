"""StableHLO of bitwise operations."""

from __future__ import annotations

from corejax.extend import xla_translations
from corejax_lax_basic.elementwise.logical import and_p, not_p, or_p, xor_p
from corejax_lax_basic.translations.elementwise.arithmetic import one_op

xla_translations.register(and_p, one_op("and"))
xla_translations.register(or_p, one_op("or"))
xla_translations.register(xor_p, one_op("xor"))
xla_translations.register(not_p, one_op("not"))
