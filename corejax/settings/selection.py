"""`Selection`: some plugins, by name; the text of `COREJAX_PLUGINS` and of `COREJAX_RULE_OVERRIDES`."""

from __future__ import annotations

from collections.abc import Iterable

from corejax.base.texts import did_you_mean

VARIABLE = "COREJAX_PLUGINS"


class Selection:
    """Which plugins are on.

    `a,b` selects these; `-c` all but that one; an empty text none; unset, all.
    """

    def __init__(self, text: str | None) -> None:
        words = None if text is None else [w.strip() for w in text.split(",") if w.strip()]
        chosen = {w for w in words or () if not w.startswith("-")}
        self.text = text
        self.excluded = {w[1:] for w in words or () if w.startswith("-")}
        self.only = None if words is None or (words and not chosen) else chosen

    def __contains__(self, name: str) -> bool:
        return name not in self.excluded and (self.only is None or name in self.only)

    @property
    def setting(self) -> str:
        """`COREJAX_PLUGINS=-acme`."""
        return f"{VARIABLE}={self.text or ''}"

    def problems(self, names: Iterable[str], variable: str = VARIABLE) -> list[str]:
        """Names in it that no plugin has, one sentence each; `variable` is where it was given."""
        known = list(names)
        found = []
        for word in sorted((self.excluded | (self.only or set())).difference(known)):
            hint = did_you_mean(word, known)
            found.append(f"{variable}={self.text} names {word!r}, which is no installed plugin{hint}")
        return found
