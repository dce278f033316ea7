"""Primitives with all their rules, with one alone, and with none but a body."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Primitive, RuleRegistry, jvp_rules, transpose_rules, vmap_rules

scale_p = Primitive(
    "toy_ops.scale",
    linear_in=(0,),
    tags=("elementwise",),
    impl=lambda x, *, factor: x * x.dtype.type(factor),
    abstract_eval=lambda x, *, factor: x,
    doc="factor * x, elementwise, in the dtype of x.",
)


def twice(x: Any) -> Any:
    """2 x."""
    return scale_p.bind(x, factor=2)


twice_p = Primitive("toy_ops.twice", decomposition=twice)
bare_p = Primitive("toy_ops.bare", impl=np.negative, multiple_results=True, effects=("print",))


@jvp_rules.register(scale_p)
def scale_jvp(primals: Any, tangents: Any, *, factor: float) -> Any:
    """Linear."""
    return scale_p.bind(*primals, factor=factor), scale_p.bind(*tangents, factor=factor)


@vmap_rules.register(scale_p)
def scale_vmap(axis_size: int, vals_in: Any, dims_in: Any, *, factor: float) -> Any:
    """Elementwise."""
    return scale_p.bind(*vals_in, factor=factor), dims_in[0]


@transpose_rules.register(scale_p)
def scale_transpose(ct: Any, x: Any, *, factor: float) -> Any:
    """Its own transpose."""
    return [scale_p.bind(ct, factor=factor)]


# A rule kind of the plugin's own: a column of `corejax list-primitives`.
toy_cost_rules = RuleRegistry("toy_cost", "cost rule", "    @toy_cost_rules.register({var})\n    ...", required=False)
toy_cost_rules.register(scale_p, lambda *avals, factor: avals[0].size)
