"""What primitives do with keys: use them, make new ones, or move them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, impl_rules
from corejax_random.generators.table import is_key_dtype
from corejax_random.reuse.keys import Keys, any_of, fresh, together

_USES = {"random_bits", "random_split", "random_gamma"}
_UNUSED = {"eq", "ne", "random_clone", "random_fold_in", "random_unwrap", "io_callback", "pure_callback"}
_SAME = {
    "convert_element_type", "copy", "device_put", "optimization_barrier", "pcast", "pvary", "sharding_constraint",
    "stage", "stop_gradient",
}  # fmt: skip
_MOVES = {"broadcast_in_dim", "reshape", "rev", "squeeze", "transpose"}
_PARTS = {"slice", "dynamic_slice", "gather"}
_JOINS = {"concatenate", "dynamic_update_slice", "pad", "scatter", "select_n", "stack"}


def moved(
    primitive: Primitive,
    params: Mapping[str, Any],
    keys: Sequence[Keys | None],
    values: Sequence[Any],
    avals_out: Sequence[ShapedArray],
    use: Callable[[Keys, int], None],
    chosen: Callable[[], dict[Any, Any]],
) -> list[Keys | None]:
    """The keys of the results of one application.

    Args:
        primitive, params: what is applied.
        keys: those of the operands; None for operands that are no keys.
        values: of other operands, as NumPy arrays; None where they are not known.
        avals_out: types of the results.
        use: called with the keys of an operand that is used up, and its position.
        chosen: gives what was found for the same choice before, to be filled in.
    """
    name = primitive.name
    if name in _SAME and len(keys) == len(avals_out):
        return list(keys)
    if name in _MOVES or name in _PARTS or name in _JOINS:
        return [_moved(primitive, params, keys, values, avals_out[0], chosen)]
    if name not in _UNUSED and not name.endswith("callback"):
        for i, x in enumerate(keys):
            if x is not None:
                use(x, i)
    return [fresh(aval.shape) if is_key_dtype(aval.dtype) else None for aval in avals_out]


def _moved(
    primitive: Primitive,
    params: Mapping[str, Any],
    keys: Sequence[Keys | None],
    values: Sequence[Any],
    aval: ShapedArray,
    chosen: Callable[[], dict[Any, Any]],
) -> Keys:
    given = [x for x in keys if x is not None]
    name = primitive.name
    known = all(x is not None or value is not None for x, value in zip(keys, values, strict=True))
    apart = all(x.apart for x in given)
    if name in _MOVES and not apart:
        return given[0]
    sources, also = together(given)
    if known and apart:
        operands = [value if x is None else x.ids for x, value in zip(keys, values, strict=True)]
        ids = impl_rules.lookup(primitive)(*operands, **params)
        return Keys(np.asarray(ids, np.int64), sources, () if name in _PARTS else also)
    if name in _PARTS or name == "select_n":
        found = chosen()
        if "keys" not in found:
            found["keys"] = any_of(given, aval.shape) if name == "select_n" else fresh(aval.shape, given[0])
        return found["keys"]  # type: ignore[no-any-return]
    new = fresh(aval.shape)
    held = given[1:] if name in ("dynamic_update_slice", "scatter") else given
    return new._replace(sources=new.sources | sources, also=(*also, *(x.ids for x in held)))
