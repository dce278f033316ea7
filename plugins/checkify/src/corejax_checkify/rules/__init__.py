"""Checkify rules for primitives of other plugins: importing this package registers them."""

from __future__ import annotations

from corejax_checkify.rules import blocks, branches, calls, check, custom_rules, floats, indexing, loops

__all__ = ["blocks", "branches", "calls", "check", "custom_rules", "floats", "indexing", "loops"]
