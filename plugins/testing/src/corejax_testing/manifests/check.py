"""Check a plugin's manifest against its code. Other checks are about primitives; this one is about plugins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from corejax.extend.plugins import plugin_records
from corejax_testing.manifests.files import manifest_differences
from corejax_testing.runner import FAILED, PASSED, SKIPPED, Result
from corejax_testing.selection import resolved

NAME = "manifest"
DOC = "Check that the plugin's manifest agrees with its code (corejax write-manifest PLUGIN)."


def verify_manifest(plugin: str) -> Result:
    """Compare a plugin's manifest, if it ships one, with what its code registers.

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
            status, message = SKIPPED, f"it ships no manifest; to write one: corejax write-manifest {plugin}"
        elif found:
            advice = f"to update the manifest: corejax write-manifest {plugin}"
            status, message = FAILED, "\n  ".join([f"the manifest and the code differ; {advice}", *found])
        else:
            status, message = PASSED, ""
    applications = int(status is not SKIPPED)
    return Result(plugin, NAME, status, message, applications=applications, seconds=time.perf_counter() - start)


def verify_manifests(names: Sequence[str]) -> Iterator[Result]:
    """Check the manifests of the named plugins and distributions, or of all plugins if there are no names."""
    names = resolved(names)
    loaded = {record.name for record in plugin_records() if record.status == "loaded"}
    for plugin in sorted(name for name in loaded if not names or name in names):
        yield verify_manifest(plugin)


def print_results(results: Sequence[Result]) -> None:
    """Print a line for each plugin, followed by the differences."""
    from corejax.extend.commands import say
    from corejax_testing.report import MARKS

    for result in results:
        text = result.report() if result.message else f"{result.primitive}: {result.check}"
        say(f"{MARKS[result.status]} {text}")
