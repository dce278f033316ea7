"""Types for parameters and results without annotations, by the names of parameters and functions."""

from __future__ import annotations

ARRAY = "_Array"
_SHAPE = "_b.int | _c.Sequence[_t.SupportsIndex]"
_ARRAYS = """
    x y a b c m v q p z x1 x2 a1 a2 arr ary A M operand lhs rhs in1 in2 array scatter_indices image weights key keys
    where mask query value loc df dfnum dfden lam sigma concentration minval maxval lower upper d dl du e T Z B C E
    coordinates taus pivots r_matrix w_vector a_matrix c_matrix element test_elements ar ar1 ar2 xp fp obs code_book
    logits segment_ids update which on_true on_false condition
"""
PARAMETERS = {
    **dict.fromkeys(_ARRAYS.split(), "_ArrayLike"),
    **dict.fromkeys(("dtype", "preferred_element_type", "new_dtype", "index_dtype", "out_dtype"), "_DTypeLike"),
    **dict.fromkeys(("shape", "new_shape"), _SHAPE),
    "axis": "_b.int | _c.Sequence[_b.int]",
    "out": "None",
    "start_indices": "_ArrayLike | _c.Sequence[_ArrayLike]",
    "out_sharding": "_t.Any",
}
OPTIONAL = ("dtype", "preferred_element_type", "new_dtype", "index_dtype", "out_dtype", "shape")

# Functions of trees, of objects that are not arrays, and of several kinds of results.
_NOT_ARRAYS = """
    after_all associative_scan create_token reduce reduce_window sort stop_gradient shape_as_value
    finfo iinfo result_type load get_printoptions printoptions set_printoptions vectorize fromfunction piecewise
    gradient isscalar iterable apply_along_axis apply_over_axes key_impl key_dtype register_generator scaled_dot_general
"""
NOT_ARRAYS = frozenset(_NOT_ARRAYS.split())
# Functions that take lists and other objects, and return arrays.
OF_OBJECTS = frozenset({"array", "asarray", "block", "select_n"})
# Packages with functions that take and return pytrees.
OF_TREES = (
    "corejax_control_flow",
    "corejax_parallel",
    "corejax_xla_backend",
    "corejax_libraries",
    "corejax_checkpoints",
)


def parameter_type(function: str, name: str, default: object) -> str:
    """Return the type of a parameter that has no annotation, or the annotation `Any`."""
    if function in NOT_ARRAYS | OF_OBJECTS and name not in ("dtype", "shape"):
        return "_t.Any"
    found = PARAMETERS.get(name, "_t.Any")
    optional = (default is None or name in OPTIONAL) and found not in ("_t.Any", "None") and name != "shape"
    return f"{found} | None" if optional else found
