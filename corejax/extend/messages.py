"""Errors and warnings, the user's line, caches, and what is restored after a block."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
