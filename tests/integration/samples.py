"""Applications of every primitive of a plugin: its author's examples, as the kit draws and varies them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from corejax.extend import ShapedArray, load_everything, primitives
from corejax_testing.calls import Call
from corejax_testing.contributions import examples_of
from corejax_testing.outcomes import NotApplicable
from corejax_testing.variations import in_other_dtypes, in_other_sizes

load_everything()


def names_of(plugin: str) -> list[str]:
    """The plugin's primitives."""
    return sorted(name for name, p in primitives.items() if p.provenance.plugin == plugin)


def samples(name: str) -> Iterator[Call]:
    """The examples of a primitive; the first one in every other dtype, and of other sizes, empty ones among them."""
    primitive, rng = primitives[name], np.random.default_rng(0)
    first, *others = examples_of(name)
    varied = [*in_other_dtypes(primitive, first), *in_other_sizes(primitive, first)]
    if "elementwise" in primitive.tags and all(isinstance(x, ShapedArray) for x in first.operands):
        varied.append(replace(first, operands=tuple(x.update(shape=(0, 2)) for x in first.operands)))
    for example in (first, *varied, *others):
        try:
            yield Call.of(primitive, example, rng)
        except NotApplicable:  # drawn in another dtype, the operands do not go together
            continue
