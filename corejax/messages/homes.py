"""The distributions that provide names, primitives and methods, for messages about those that are not installed.

The kernel needs none of these distributions. `make manifests` writes the table, `homes.txt`, from their plugins.
"""

from __future__ import annotations

import functools
import os

from corejax.base.texts import how_to_install

# Each line has a distribution, a kind, and names of that kind.
with open(os.path.join(os.path.dirname(__file__), "homes.txt"), encoding="utf-8") as _file:
    _PROVIDED = [line.split() for line in _file]
HOMES = frozenset(home for home, *_ in _PROVIDED)


@functools.cache
def homes(kind: str) -> dict[str, str]:
    """Return the distribution that provides each name.

    Args:
        kind: kind of the names: "names" (of the facade and its namespaces), "primitives", "commands", "array_methods",
            "operations", "backends" or "rule_kinds" (with derivations, or rules for others' primitives).
    """
    return {name: home for home, each, *names in _PROVIDED if each == kind for name in names}


def install_advice(kind: str, *names: str) -> str:
    """Return `"; install corejax-fft (pip install corejax-fft)"`, to end a message; "" if no distribution is known.

    Args:
        kind: as in `homes`.
        names: the missing names; by default all names of the kind.
    """
    known = homes(kind)
    distributions = sorted({known[name] for name in names or known if name in known})
    return f"; install {' or '.join(map(how_to_install, distributions))}" if distributions else ""
