"""The effects of primitives on keys: to use them, to create new ones, or to move them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import Primitive, ShapedArray, impl_rules
from corejax_random.generators.table import is_key_dtype
from corejax_random.reuse.keys import Keys, any_of, fresh, merge_sources

_USES = {"random_bits", "random_split", "random_gamma"}
_UNUSED = {"eq", "ne", "random_clone", "random_fold_in", "random_unwrap", "io_callback", "pure_callback"}
_SAME = {
    "convert_element_type", "copy", "device_put", "optimization_barrier", "pcast", "pvary", "sharding_constraint",
    "stage", "stop_gradient",
}  # fmt: skip
_MOVES = {"broadcast_in_dim", "reshape", "rev", "squeeze", "transpose"}
_PARTS = {"slice", "dynamic_slice", "gather"}
_JOINS = {"concatenate", "dynamic_update_slice", "pad", "scatter", "select_n", "stack"}


def keys_of_results(
    primitive: Primitive,
    params: Mapping[str, Any],
    keys: Sequence[Keys | None],
    values: Sequence[Any],
    avals_out: Sequence[ShapedArray],
    use: Callable[[Keys, int], None],
    chosen: Callable[[], dict[Any, Any]],
) -> list[Keys | None]:
    """Return the keys of the results of one application.

    Args:
        primitive: the primitive.
        params: parameters of the application.
        keys: keys of the operands; None for operands that are not keys.
        values: values of other operands, as NumPy arrays; None if they are not known.
        avals_out: types of the results.
        use: function that is called with the keys of an operand that is used, and the operand's position.
        chosen: returns a dict that caches the result for the same selection.
    """
    name = primitive.name
    if name in _SAME and len(keys) == len(avals_out):
        return list(keys)
    if name in _MOVES or name in _PARTS or name in _JOINS:
        return [_move(primitive, params, keys, values, avals_out[0], chosen)]
    if name not in _UNUSED and not name.endswith("callback"):
        for i, x in enumerate(keys):
            if x is not None:
                use(x, i)
    return [fresh(aval.shape) if is_key_dtype(aval.dtype) else None for aval in avals_out]


def _move(
    primitive: Primitive,
    params: Mapping[str, Any],
    keys: Sequence[Keys | None],
    values: Sequence[Any],
    aval: ShapedArray,
    chosen: Callable[[], dict[Any, Any]],
) -> Keys:
    """Return the keys of the result of a primitive that moves, selects or joins keys.

    If all indices are known, the primitive is applied to the keys' numbers. Otherwise a selection is a new source with
    the operand as its pool, and a join has its operands' keys at unknown positions.
    """
    operand_keys = [x for x in keys if x is not None]
    name = primitive.name
    known = all(x is not None or value is not None for x, value in zip(keys, values, strict=True))
    distinct = all(x.distinct for x in operand_keys)
    if name in _MOVES and not distinct:
        return operand_keys[0]
    sources, unlocated = merge_sources(operand_keys)
    if known and distinct:
        operands = [value if x is None else x.ids for x, value in zip(keys, values, strict=True)]
        ids = impl_rules.lookup(primitive)(*operands, **params)
        return Keys(np.asarray(ids, np.int64), sources, () if name in _PARTS else unlocated)
    if name in _PARTS or name == "select_n":
        cache = chosen()
        if "keys" not in cache:
            selection = any_of(operand_keys, aval.shape) if name == "select_n" else fresh(aval.shape, operand_keys[0])
            cache["keys"] = selection
        chosen_keys: Keys = cache["keys"]
        return chosen_keys
    new = fresh(aval.shape)
    joined = operand_keys[1:] if name in ("dynamic_update_slice", "scatter") else operand_keys
    return new._replace(sources=new.sources | sources, unlocated=(*unlocated, *(x.ids for x in joined)))
