"""The kit for authors of plugins: templates of distributions, checks of rules, manifests and stubs.

corejax new-plugin acme                 # in a shell
corejax verify acme
test_rules = corejax_testing.tests_for("acme")    # in a test file: one test for each primitive and check
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corejax_testing.authors import tests_for as tests_for
    from corejax_testing.calls import Call as Call
    from corejax_testing.checks import CHECKS as CHECKS
    from corejax_testing.checks import Check as Check
    from corejax_testing.frameworks import Framework as Framework
    from corejax_testing.frameworks import check_in_framework as check_in_framework
    from corejax_testing.manifests.check import verify_manifest as verify_manifest
    from corejax_testing.outcomes import CheckFailure as CheckFailure
    from corejax_testing.outcomes import NotApplicable as NotApplicable
    from corejax_testing.runner import Result as Result
    from corejax_testing.runner import verify as verify

_LAZY = {
    "CHECKS": "checks",
    "Call": "calls",
    "Check": "checks",
    "CheckFailure": "outcomes",
    "Framework": "frameworks",
    "NotApplicable": "outcomes",
    "Result": "runner",
    "check_in_framework": "frameworks",
    "tests_for": "authors",
    "verify": "runner",
    "verify_manifest": "manifests.check",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'corejax_testing' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"corejax_testing.{_LAZY[name]}"), name)
