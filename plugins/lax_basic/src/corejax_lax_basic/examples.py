"""Applications of every primitive here, for whoever checks its rules (`corejax verify lax_basic`)."""

from __future__ import annotations

from corejax.extend import Example
from corejax_lax_basic.conversion import examples as conversion
from corejax_lax_basic.convolution import examples as convolution
from corejax_lax_basic.creation import examples as creation
from corejax_lax_basic.elementwise import examples as elementwise
from corejax_lax_basic.indexing import examples as indexing
from corejax_lax_basic.linear import examples as linear
from corejax_lax_basic.reductions import examples as reductions
from corejax_lax_basic.shape import examples as shape
from corejax_lax_basic.sorting import examples as sorting
from corejax_lax_basic.special import examples as special
from corejax_lax_basic.windows import examples as windows

_PACKAGES = (
    conversion,
    convolution,
    creation,
    elementwise,
    indexing,
    linear,
    reductions,
    shape,
    sorting,
    special,
    windows,
)
_NAMED = {name: make for package in _PACKAGES for name, make in package.NAMED.items()}


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    return _NAMED[primitive]() if primitive in _NAMED else []
