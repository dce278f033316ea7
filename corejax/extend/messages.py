"""Errors and warnings, the user's line, caches, and temporary changes."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
