"""Programs as data, and rules of primitives with programs in their parameters."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
