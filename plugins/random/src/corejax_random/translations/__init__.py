"""StableHLO of the primitives that are no decompositions."""

from __future__ import annotations

from corejax_random.translations import bit_generator, hashing, random_between
