"""Every rule against the others, one test for each check; skipped where corejax-testing is not installed."""

from __future__ import annotations

import pytest

corejax_testing = pytest.importorskip("corejax_testing")

test_rules = corejax_testing.tests_for("running_statistics")
