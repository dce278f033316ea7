"""StableHLO of `random_between`: that of its decomposition."""

from __future__ import annotations

from typing import Any

from corejax.extend import decomposed, xla_translations
from corejax_random.distributions.random_between import random_between_p


@xla_translations.register(random_between_p)
def random_between(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """`multiply`, `add` and `maximum`."""
    return ctx.inline(decomposed(random_between_p, in_avals, {}), in_vals)[0]
