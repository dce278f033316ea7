"""Commands of `corejax`: what they print, and what several of them look up."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
