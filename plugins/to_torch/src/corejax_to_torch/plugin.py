"""The plugin's hooks. torch is imported when the bridge is first used."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Provide `corejax.to_torch`."""
    return {"to_torch": "corejax_to_torch.api:to_torch"}


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide the check `torch` of `corejax verify`: a primitive has the same results in PyTorch as in corejax."""
    return {"torch": "corejax_to_torch.verification:TORCH"}
