"""Checkify rules for primitives of other plugins: importing this package registers them."""

from __future__ import annotations

from corejax_checkify.rules import check, custom_rules, floats, indexing, programs

__all__ = ["check", "custom_rules", "floats", "indexing", "programs"]
