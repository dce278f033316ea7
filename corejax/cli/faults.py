"""Reports of plugins that failed to load, a line for each on standard error, with advice."""

from __future__ import annotations

from corejax.cli.output import complain
from corejax.plugins import manager
from corejax.settings.config import config
from corejax.settings.selection import Selection


def report_faults() -> None:
    """Print failed plugins, and the names in `COREJAX_PLUGINS` that no plugin has, to standard error."""
    for record in list(manager().records.values()):
        for problem in record.problems():
            remedy = f"upgrade, repair or uninstall it, or switch it off (COREJAX_PLUGINS=-{record.name})"
            complain(f"{problem.rstrip('.')}. To see why: corejax plugins --load. Then {remedy}.")
    report_selection()


def report_selection() -> None:
    """Print names in `COREJAX_PLUGINS` and `COREJAX_RULE_OVERRIDES` that no plugin has to standard error."""
    problems = manager().selection.problems(manager().records)
    if isinstance(config.rule_overrides, str):
        problems += Selection(config.rule_overrides).problems(manager().records, "COREJAX_RULE_OVERRIDES")
    for problem in problems:
        complain(f"{problem}.")
