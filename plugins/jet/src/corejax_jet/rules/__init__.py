"""Jet rules for other plugins' primitives, imported when the first rule is needed."""

from __future__ import annotations

import corejax_jet.rules.choices
import corejax_jet.rules.elementwise
import corejax_jet.rules.linear
import corejax_jet.rules.loops
import corejax_jet.rules.products
