"""Commands of `corejax`: functions that print, and look-ups that several commands share."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
