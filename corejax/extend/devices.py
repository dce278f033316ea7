"""Parts of backends: devices, buffers, compiled programs, memory, and checks of values."""

from corejax.extend._chapters import chapter as _chapter

__getattr__, __dir__, __all__ = _chapter(__name__)
