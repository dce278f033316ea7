"""`jax.experimental.sparse`: corejax has no sparse arrays, so that nothing is an instance of their classes."""

from typing import Any as _Any

from corejax_as_jax.absent import absent_class as _absent_class

BCOO = _absent_class("BCOO")
BCSR = _absent_class("BCSR")
COO = _absent_class("COO")
CSR = _absent_class("CSR")
JAXSparse = _absent_class("JAXSparse")


def sparsify(f: _Any, use_tracer: bool = False) -> _Any:
    """Return the function: its arguments are dense."""
    return f
