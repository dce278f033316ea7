"""Hook implementations of the plugin. Discovery imports this module, so hooks import the rest when they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from corejax.extend import hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.checkify`, also under its name in JAX."""
    return {"checkify": "corejax_checkify.api", "experimental.checkify": "corejax_checkify.api"}


@hookimpl
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """Declare the rule kind `checkify`."""
    return {"checkify": "corejax_checkify.interpreter:checkify_rules"}


@hookimpl
def corejax_register_primitives() -> None:
    """Import the primitives `check` and `debug_check` and their rules."""
    import corejax_checkify.check  # noqa: F401


@hookimpl
def corejax_register_rules(kind: str) -> None:
    """Import the rules for other plugins' primitives, when the first one is needed."""
    if kind == "checkify":
        import corejax_checkify.rules  # noqa: F401


@hookimpl
def corejax_provide_examples(primitive: str) -> list[Example]:
    """Return example applications of one primitive, on which its rules are checked."""
    if primitive not in ("check", "debug_check"):
        return []
    from corejax_checkify.examples import check_examples

    return check_examples(primitive)


@hookimpl
def corejax_provide_checks() -> Mapping[str, str]:
    """Provide the check of checkify rules for `corejax verify`."""
    return {"checkify": "corejax_checkify.verification:CHECKIFY"}
