"""XLA translation rules, one module for each family of primitives; imported when something is compiled."""

from corejax_lax_basic.translations import binary as binary
from corejax_lax_basic.translations import comparison as comparison
from corejax_lax_basic.translations import complex_numbers as complex_numbers
from corejax_lax_basic.translations import convert as convert
from corejax_lax_basic.translations import cumulative as cumulative
from corejax_lax_basic.translations import dot as dot
from corejax_lax_basic.translations import logical as logical
from corejax_lax_basic.translations import reductions as reductions
from corejax_lax_basic.translations import select as select
from corejax_lax_basic.translations import shape as shape
from corejax_lax_basic.translations import slicing as slicing
from corejax_lax_basic.translations import unary as unary
