"""Types: symbolic sizes, extended dtypes, and refinements that plugins add to types."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
