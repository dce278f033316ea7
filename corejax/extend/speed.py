"""Layers of evaluation: engines, checks of evaluated operations, and the evaluation of programs on NumPy arrays.

An engine (`Engine`) makes eager calls faster without changing results; `corejax-eager` is one. `Checks`, such as those
of `corejax-explain`, inspect values and operations while a setting is on. Both import nothing of the kernel except
`corejax.extend` and this module. Names of this module may change in any version.
"""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
