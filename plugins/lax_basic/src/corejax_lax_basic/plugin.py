"""The plugin's hooks. Discovery imports this module, so it imports the other modules only inside its hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.extend import Primitive, hookimpl

if TYPE_CHECKING:
    from corejax.extend import Example

# Module -> the names that it exports to the facade `corejax`.
_NAMES = {
    "_base.promotion": """
        dtypes.TypePromotionError dtypes.check_strict_promotion dtypes.dtype_and_weak_type dtypes.lattice_result_type
        dtypes.promote_types dtypes.result_type
    """,
    "_base.related_dtypes": """
        dtypes.complex_dtype_of dtypes.default_complex_dtype dtypes.default_float_dtype dtypes.default_int_dtype
        dtypes.default_uint_dtype dtypes.inexact_dtype_of dtypes.issubdtype dtypes.itemsize_bits dtypes.scalar_type_of
    """,
    "arrays.dynamic_slices": "ds",
    "linear.precision": "default_matmul_precision",
    "transforms.absl_flags": "define_absl_flags parse_absl_flags",
    "transforms.compile_time": "ensure_compile_time_eval",
    "transforms.jacobians": "hessian jacfwd jacobian jacrev",
    "transforms.settings": """
        check_tracer_leaks checking_leaks debug_infs debug_nans disable_jit enable_checks enable_x64
        numpy_dtype_promotion numpy_rank_promotion
    """,
}
# The names of `trees` in `corejax.tree` and `corejax.tree_util`, and the short ones that only `corejax.tree` has.
_TREE_NAMES = """
    build_tree register_dataclass register_pytree_with_keys register_pytree_with_keys_class register_static static
    tree_all tree_broadcast tree_leaves_with_path tree_reduce tree_reduce_associative tree_transpose
    treedef_children treedef_is_leaf
"""
_SHORT_TREE_NAMES = "all broadcast leaves_with_path reduce reduce_associative transpose"


@hookimpl
def corejax_register_primitives() -> None:
    """Import every module that defines primitives."""
    from corejax_lax_basic.lax import _import_all

    _import_all()


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Register translations; they live in modules of their own because only compilation needs them."""
    if kind == "xla_translation":
        from corejax_lax_basic import translations

        if primitive is None:
            corejax_register_primitives()  # tables of primitives: each row is translated
        translations.load(primitive)


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """Export the promotion of dtypes, Jacobians, context managers for settings, and functions on trees."""
    named = [(module, name) for module, names in _NAMES.items() for name in names.split()]
    named += [("trees", f"{namespace}.{name}") for namespace in ("tree", "tree_util") for name in _TREE_NAMES.split()]
    places = {name: f"corejax_lax_basic.{module}:{name.rpartition('.')[2]}" for module, name in named}
    return places | {f"tree.{name}": f"corejax_lax_basic.trees:tree_{name}" for name in _SHORT_TREE_NAMES.split()}


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """Export `corejax.lax`."""
    return {"lax": "corejax_lax_basic.lax"}


@hookimpl
def corejax_provide_array_methods() -> Mapping[str, str]:
    """Provide the operators, indexing and methods of arrays and tracers."""
    from corejax_lax_basic.arrays import METHODS

    return METHODS


@hookimpl
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:
    """Provide the structural operations that interpreters need."""
    from corejax_lax_basic.structural_operations import OPERATIONS

    return OPERATIONS


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return examples of a primitive; nothing imports them until its rules are checked."""
    from corejax_lax_basic.examples import examples_of

    return examples_of(primitive)
