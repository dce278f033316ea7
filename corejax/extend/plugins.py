"""Plugins: their exports, and functions for kits that check them."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
