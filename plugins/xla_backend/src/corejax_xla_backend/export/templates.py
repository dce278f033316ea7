"""Programs with symbols: StableHLO's text, in which expressions stand for sizes; one program for each call's sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from corejax_xla_backend import _jaxlib
from corejax_xla_backend.export.dims import size_at

_EXPRESSION = re.compile("⟨([^⟩]*)⟩")


def portable_at(name: str, template: bytes, sizes: Mapping[str, int]) -> bytes:
    """The portable module for sizes of the symbols.

    Raises:
        NotImplementedError: there is no such program: an operation's translation does more with sizes than arithmetic.
    """
    text = _EXPRESSION.sub(lambda found: str(size_at(found[1], sizes)), template.decode())
    try:
        return _jaxlib.to_portable(_jaxlib.parse_module(text), _jaxlib.portable_version())  # type: ignore[no-any-return]
    except (RuntimeError, ValueError, _jaxlib.ir.MLIRError) as error:
        shown = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
        raise NotImplementedError(
            f"the exported function {name} has no program for {shown}: {str(error).strip().splitlines()[-1]}. Export "
            "it for integer sizes"
        ) from error
