"""What `jit` tells of traces and compilations: observers in this thread, and the log where settings ask for it.

The logger is `corejax`; `log_compiles` has every trace and compilation logged, `explain_cache_misses` what was
different where a function is traced a second time.
"""

from __future__ import annotations

import logging

from corejax.extend import config
from corejax.extend.messages import observe

logger = logging.getLogger("corejax")


def is_observed() -> bool:
    """Whether somebody wants to know: asked before a report is prepared."""
    return observe.observed() or config.log_compiles or config.explain_cache_misses


def report(event: observe.Event, *, first: bool = True) -> None:
    """Tell observers of a trace or a compilation, and log it; `first` says if it is the function's first."""
    observe.notify(event)
    took = f"in {event.ms:.3g} ms" if event.ms is not None else ""
    reasons = "; ".join(event.reasons)
    if event.kind == "trace" and config.explain_cache_misses and not first:
        logger.warning("jit of %s is traced again: %s", event.name, reasons)
    if config.log_compiles:
        if event.kind == "trace":
            logger.warning("traced %s%s %s (%s)", event.name, event.facts["signature"], took, reasons)
        else:
            size, platform = event.facts["equations"], event.facts["platform"]
            logger.warning("compiled %s, %s equations, for %s %s (%s)", event.name, size, platform, took, reasons)
