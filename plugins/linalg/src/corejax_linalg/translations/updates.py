"""XLA translations of `cholesky_update`, which has an impl rule besides its decomposition."""

from __future__ import annotations

from corejax.extend import xla_translations
from corejax_linalg.primitives.updates import cholesky_update_p

xla_translations.register(cholesky_update_p, by="decomposition")
