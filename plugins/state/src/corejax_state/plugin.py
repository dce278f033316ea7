"""The hooks that the plugin implements. Discovery imports this module, so the hooks import everything else."""

from __future__ import annotations

from collections.abc import Mapping

from corejax.extend import hookimpl


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Export references under the names that JAX gives them."""
    home = "corejax_state.ref"
    return {
        "Ref": f"{home}:Ref",
        "new_ref": f"{home}:new_ref",
        "empty_ref": f"{home}:empty_ref",
        "free_ref": f"{home}:free_ref",
        "freeze": f"{home}:freeze",
    }


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.ref`, `corejax.ad` and `corejax.experimental.random`."""
    return {
        "ad": "corejax_state.ad",
        "experimental.random": "corejax_state.stateful_random",
        "ref": "corejax_state.ref",
    }


@hookimpl
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """Declare the rule kind `discharge`: what primitives on references do with the values."""
    return {"discharge": "corejax_state.discharge:discharge_rules"}


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide a check for `corejax verify`: a primitive on references agrees with its primitive of arrays."""
    return {"discharge": "corejax_state.verification:DISCHARGE"}
