"""Transformations of functions: traces, tangents, batches, named axes, and flat functions."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
