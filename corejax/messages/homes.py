"""Which distribution provides what, for messages about what no installed plugin has.

The kernel needs none of these distributions. `make manifests` writes the table, `homes.txt`, from their plugins.
"""

from __future__ import annotations

import functools
from pathlib import Path

from corejax.base.texts import how_to_install

# Of each line the distribution, the kind and the names.
_PROVIDED = [line.split() for line in Path(__file__).with_name("homes.txt").read_text().splitlines()]
HOMES = frozenset(home for home, *_ in _PROVIDED)


@functools.cache
def homes(kind: str) -> dict[str, str]:
    """Return the distribution that provides each name.

    Args:
        kind: of the names: "names" of the facade and its namespaces, "primitives", "commands", "array_methods",
            "operations" or "backends".
    """
    return {name: home for home, each, *names in _PROVIDED if each == kind for name in names}


def install_advice(kind: str, *names: str) -> str:
    """Return `"; install corejax-fft (pip install corejax-fft)"`, to end a message; "" if nothing known helps.

    Args:
        kind: as in `homes`.
        names: what is missing; by default, anything of the kind will do.
    """
    known = homes(kind)
    found = sorted({known[name] for name in names or known if name in known})
    return f"; install {' or '.join(map(how_to_install, found))}" if found else ""
