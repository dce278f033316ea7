"""Reports of traces and compilations to the observers in this thread and to the log.

The logger is `corejax`. The setting `log_compiles` logs every trace and compilation; `explain_cache_misses` logs why a
function is traced again.
"""

from __future__ import annotations

import logging

from corejax.extend import config
from corejax.extend.messages import observe
from corejax_xla_backend import monitoring

logger = logging.getLogger("corejax")


def is_observed() -> bool:
    """Return whether there is an observer or a log for reports; check this before a report is prepared."""
    return observe.observed() or config.log_compiles or config.explain_cache_misses or monitoring.listening()


def report(event: observe.Event, *, first: bool = True) -> None:
    """Report a trace or a compilation to the observers, and log it; `first` is True for a function's first trace."""
    observe.notify(event)
    monitoring.report(event)
    took = f"in {event.ms:.3g} ms" if event.ms is not None else ""
    reasons = "; ".join(event.reasons)
    if event.kind == "trace" and config.explain_cache_misses and not first:
        logger.warning("jit of %s is traced again: %s", event.name, reasons)
    if config.log_compiles:
        if event.kind == "trace":
            logger.warning("traced %s%s %s (%s)", event.name, event.facts["signature"], took, reasons)
        elif event.kind == "persist":
            logger.warning("jit of %s: %s", event.name, reasons)
        elif event.kind == "compile":
            size, platform = event.facts["equations"], event.facts["platform"]
            logger.warning("compiled %s, %s equations, for %s %s (%s)", event.name, size, platform, took, reasons)
