"""Types: symbolic sizes, elements that are made of numbers, and what a plugin says of a type beside them."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
