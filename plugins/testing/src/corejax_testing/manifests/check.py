"""The check of a plugin's manifest against its code; of a plugin, where other checks are of a primitive."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from corejax.extend.plugins import plugin_records
from corejax_testing.manifests.files import manifest_differences
from corejax_testing.runner import FAILED, PASSED, SKIPPED, Result
from corejax_testing.selection import resolved

NAME = "manifest"
DOC = "the plugin's manifest says what its code does (corejax write-manifest PLUGIN)"


def verify_manifest(plugin: str) -> Result:
    """Compare a plugin's manifest, if it ships one, with what it puts into the tables.

    Raises:
        KeyError: there is no such plugin.
    """
    start = time.perf_counter()
    try:
        found = manifest_differences(plugin)
    except ValueError as error:
        status, message = FAILED, str(error)
    else:
        if found is None:
            status, message = SKIPPED, f"it ships none; to write one: corejax write-manifest {plugin}"
        elif found:
            advice = f"to write what the code says: corejax write-manifest {plugin}"
            status, message = FAILED, "\n  ".join([f"the manifest and the code differ; {advice}", *found])
        else:
            status, message = PASSED, ""
    applications = int(status is not SKIPPED)
    return Result(plugin, NAME, status, message, applications=applications, seconds=time.perf_counter() - start)


def verify_manifests(names: Sequence[str]) -> Iterator[Result]:
    """The check for those of the names that are plugins; for no names, for all plugins."""
    names = resolved(names)
    loaded = {record.name for record in plugin_records() if record.status == "loaded"}
    for plugin in sorted(name for name in loaded if not names or name in names):
        yield verify_manifest(plugin)


def print_results(results: Sequence[Result]) -> None:
    """A line for each plugin; what differs below it."""
    from corejax.extend.commands import say
    from corejax_testing.report import MARKS

    for result in results:
        text = result.report() if result.message else f"{result.primitive}: {result.check}"
        say(f"{MARKS[result.status]} {text}")
