"""`Selection`: a set of plugins, as the texts of `COREJAX_PLUGINS` and `COREJAX_RULE_OVERRIDES` describe it."""

from __future__ import annotations

from collections.abc import Iterable

from corejax.base.texts import did_you_mean

VARIABLE = "COREJAX_PLUGINS"


class Selection:
    """A set of plugins: `a,b` selects these, `-c` all but that one, an empty text none, and None all."""

    def __init__(self, text: str | None) -> None:
        words = None if text is None else [w.strip() for w in text.split(",") if w.strip()]
        included = {w for w in words or () if not w.startswith("-")}
        self.text = text
        self.excluded = {w[1:] for w in words or () if w.startswith("-")}
        self.only = None if words is None or (words and not included) else included

    def __contains__(self, name: str) -> bool:
        return name not in self.excluded and (self.only is None or name in self.only)

    @property
    def setting(self) -> str:
        """The environment variable and its value: `COREJAX_PLUGINS=-acme`."""
        return f"{VARIABLE}={self.text or ''}"

    def problems(self, names: Iterable[str], variable: str = VARIABLE) -> list[str]:
        """Return a sentence for each selected name that is not in `names`; `variable` is the variable for the text."""
        known = list(names)
        missing = sorted((self.excluded | (self.only or set())).difference(known))
        named = f"{variable}={self.text} names"
        return [f"{named} {word!r}, which is not an installed plugin{did_you_mean(word, known)}" for word in missing]
