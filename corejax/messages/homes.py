"""Which distribution provides what, for messages about what no installed plugin has.

The kernel needs none of these distributions. `make manifests` writes the table, `homes.json`, from their plugins.
"""

from __future__ import annotations

import functools
import json
import pkgutil

from corejax.base.texts import how_to_install

# distribution -> kind -> names
_PROVIDED: dict[str, dict[str, list[str]]] = json.loads(pkgutil.get_data("corejax.messages", "homes.json") or "{}")
HOMES = frozenset(_PROVIDED)


@functools.cache
def homes(kind: str) -> dict[str, str]:
    """Return the distribution that provides each name.

    Args:
        kind: of the names: "names" of the facade and its namespaces, "primitives", "commands", "array_methods",
            "operations" or "backends".
    """
    return {name: home for home, kinds in _PROVIDED.items() for name in kinds.get(kind, ())}


def install_advice(kind: str, *names: str) -> str:
    """Return `"; install corejax-fft (pip install corejax-fft)"`, to end a message; "" if nothing known helps.

    Args:
        kind: as in `homes`.
        names: what is missing; by default, anything of the kind will do.
    """
    known = homes(kind)
    found = sorted({known[name] for name in names or known if name in known})
    return f"; install {' or '.join(map(how_to_install, found))}" if found else ""
