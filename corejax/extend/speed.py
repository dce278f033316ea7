"""For layers of evaluation: an engine, checks of what is evaluated, and what evaluates programs on NumPy arrays.

An engine (`Engine`) makes eager calls faster without changing results; `corejax-eager` is one. `Checks` look at values
and operations while a setting is on; those of `corejax-explain` do. Both use nothing of the kernel but `corejax.extend`
and this module, whose names may change in any version.
"""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
