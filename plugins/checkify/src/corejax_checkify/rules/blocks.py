"""Programs of blocks: each element of a mesh has an error of its own, of which the first that failed counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corejax.extend import ClosedJaxpr, find_primitive, inline_closed, memoised, stage_closed
from corejax.extend.plugins import exported
from corejax_checkify.check_primitive import first_failed
from corejax_checkify.interpreter import Checks, checked_jaxpr, checkify_rules
from corejax_lax_basic import lax

_shard_map_p = find_primitive("shard_map")


def _stacking(program: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """The program whose last results have a first axis of size 1, along which those of all elements are put."""

    def flat(*args: Any) -> list[Any]:
        outs = inline_closed(program, args)
        return [*outs[:-count], *[lax.expand_dims(x, (0,)) for x in outs[-count:]]]

    return memoised(
        program, ("errors of blocks", count), lambda: stage_closed(flat, program.in_avals, program.jaxpr.debug_info)
    )


def _shard_map_checkify(
    checks: Checks,
    *operands: Any,
    jaxpr: ClosedJaxpr,
    mesh: Any,
    out_specs: Sequence[Any],
    axis_name: tuple[Any, ...],
    **params: Any,
) -> list[Any]:
    program, error_type = checked_jaxpr(jaxpr, checks.kinds)
    count = len(error_type.avals())
    if count:
        program = _stacking(program, count)
    outs = _shard_map_p.bind(  # type: ignore[union-attr]
        *operands,
        jaxpr=program,
        mesh=mesh,
        out_specs=(*out_specs, *[exported("P")(axis_name)] * count),
        axis_name=axis_name,
        **params,
    )
    if not count:
        return list(outs)
    size = math.prod(size for name, size in mesh.shape_tuple if name in axis_name)
    return checks.taken([*outs[:-count], *first_failed(size, outs[-count:], [0] * count)], error_type)


if _shard_map_p is not None:
    checkify_rules.register(_shard_map_p, _shard_map_checkify)
