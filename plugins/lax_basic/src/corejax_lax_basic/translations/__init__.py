"""XLA translation rules, a module for each of primitives that need one; imported when something is compiled."""

from corejax_lax_basic.translations.conversion import convert as convert
from corejax_lax_basic.translations.convolution import conv as conv
from corejax_lax_basic.translations.creation import iota as iota
from corejax_lax_basic.translations.elementwise import _family as _family
from corejax_lax_basic.translations.elementwise import arithmetic as arithmetic
from corejax_lax_basic.translations.elementwise import comparison as comparison
from corejax_lax_basic.translations.elementwise import complex_numbers as complex_numbers
from corejax_lax_basic.translations.elementwise import powers as powers
from corejax_lax_basic.translations.elementwise import select as select
from corejax_lax_basic.translations.elementwise import unary as unary
from corejax_lax_basic.translations.indexing import dynamic_slicing as dynamic_slicing
from corejax_lax_basic.translations.linear import dot as dot
from corejax_lax_basic.translations.reductions import cumulative as cumulative
from corejax_lax_basic.translations.reductions import general as general_reduction
from corejax_lax_basic.translations.reductions import reduce as reduce
from corejax_lax_basic.translations.shape import broadcasting as broadcasting
from corejax_lax_basic.translations.shape import joining as joining
from corejax_lax_basic.translations.shape import rearranging as rearranging
from corejax_lax_basic.translations.shape import slicing as slicing
from corejax_lax_basic.translations.windows import general as general_windows
from corejax_lax_basic.translations.windows import reduce_window as reduce_window
from corejax_lax_basic.translations.windows import select_and_scatter as select_and_scatter
from corejax_lax_basic.translations.windows import selection as selection
