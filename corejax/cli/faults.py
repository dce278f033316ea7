"""What went wrong while plugins were loaded, one line each on standard error, with what to do about it."""

from __future__ import annotations

from corejax.cli.output import complain
from corejax.plugins import manager


def report_faults() -> None:
    """Complain about failed plugins and about names in `COREJAX_PLUGINS` that nobody has."""
    for record in list(manager().records.values()):
        for problem in record.problems():
            remedy = f"upgrade, repair or uninstall it, or switch it off (COREJAX_PLUGINS=-{record.name})"
            complain(f"{problem}. To see why: corejax plugins. Then {remedy}.")
    report_selection()


def report_selection() -> None:
    """Complain about names in `COREJAX_PLUGINS` that no plugin has."""
    for problem in manager().selection.problems(record.name for record in manager().records.values()):
        complain(f"{problem}.")
