"""Array operations of a lower level than `corejax.numpy`, control flow such as `scan`, and collectives such as `psum`.

Use `corejax.lax` for loops and branches in compiled functions, and for operations that NumPy lacks, such as
convolutions, gathers and `top_k`. Its functions correspond closely to the operations of XLA. They are stricter than the
functions of `corejax.numpy`, which are built on them: two arrays must have the same dtype and, unless one of them is a
scalar, the same number of axes.
"""

# A module of the plugin is imported when one of its names is first used.

from __future__ import annotations

import importlib as _importlib
import typing as _typing

from corejax_lax_basic._base.namespaces import lazy_names as _lazy_names

if _typing.TYPE_CHECKING:  # the types of helpers for other plugins; stubs have those of public names
    from corejax_lax_basic._base.rows import named as named
    from corejax_lax_basic._base.scalars import fill_scalar as fill_scalar
    from corejax_lax_basic._base.scalars import make_scalar as make_scalar
    from corejax_lax_basic._promotion import as_operand as as_operand
    from corejax_lax_basic._promotion import broadcast_operands as broadcast_operands
    from corejax_lax_basic._promotion import convert_operand as convert_operand
    from corejax_lax_basic._promotion import promote_dtypes as promote_dtypes
    from corejax_lax_basic._promotion import promote_operands as promote_operands

_MODULES = {
    "_base.accuracy": "AccuracyMode Tolerance",
    "_base.axes": "canonical_shape is_several",
    "_base.constants": "asarray",
    "_base.namespaces": "lazy_names",
    "_base.placing": "place",
    "_base.requested_dtypes": "requested_dtype",
    "_base.rows": "named",
    "_base.scalars": "beyond fill_scalar is_python_scalar make_scalar",
    "_base.type_rules": "dtypes_of",
    "_promotion": """
        as_operand broadcast_operands check_dtype_promotion check_rank_promotion convert_operand promote_dtypes
        promote_operands yielding_scalar
    """,
    "conversion.bitcast": "bitcast_convert_type bitcast_convert_type_p",
    "conversion.convert": "convert_element_type convert_element_type_p in_dtype stop_gradient stop_gradient_p",
    "conversion.identity": "beside copy_p stage stage_p",
    "conversion.precision": "reduce_precision reduce_precision_p",
    "convolution.conv": "conv_general_dilated conv_general_dilated_p",
    "convolution.dimension_numbers": """
        ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers conv_general_permutations
        conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple
    """,
    "convolution.forms": """
        conv conv_general_dilated_local conv_general_dilated_patches conv_transpose conv_with_general_padding
    """,
    "creation.sequences": "from_sequence",
    "creation.empty": "after_all after_all_p create_token create_token_p empty empty_p",
    "creation.filled": "full full_like zeros_like_array",
    "creation.iota": "broadcasted_iota iota iota_p",
    "elementwise.arithmetic": "add add_p div div_p max max_p min min_p mul mul_p neg neg_p rem rem_p sub sub_p",
    "elementwise.bits": """
        clz clz_p mulhi mulhi_p population_count population_count_p shift_left shift_left_p
        shift_right_arithmetic shift_right_arithmetic_p shift_right_logical shift_right_logical_p
    """,
    "elementwise.comparison": "eq eq_p ge ge_p gt gt_p le le_p lt lt_p ne ne_p",
    "elementwise.complex_numbers": "complex complex_p conj conj_p imag imag_p real real_p",
    "elementwise.logical": "and_p bitwise_and bitwise_not bitwise_or bitwise_xor not_p or_p xor_p",
    "elementwise.polynomial": "polynomial polynomial_p",
    "elementwise.powers": """
        integer_pow integer_pow_p one_minus_square one_minus_square_p pow pow_p reciprocal square square_p
    """,
    "elementwise.rounding": "RoundingMethod nextafter nextafter_p round round_p",
    "elementwise.select": "clamp clamp_p select select_n select_n_p",
    "elementwise.trigonometry": """
        acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh atanh_p cos cos_p
        cosh cosh_p sin sin_p sinh sinh_p tan tan_p tanh tanh_p
    """,
    "elementwise.unary": """
        abs abs_p cbrt cbrt_p ceil ceil_p exp exp2 exp2_p exp_p expm1 expm1_p floor floor_p is_finite
        is_finite_p log log1p log1p_p log2 log2_p log_p logistic logistic_p rsqrt rsqrt_p sign sign_p sqrt sqrt_p
    """,
    "indexing.dimension_numbers": "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers",
    "indexing.dynamic_slicing": """
        dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p dynamic_update_index_in_dim
        dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_slice_p
    """,
    "indexing.gather": "gather gather_p index_take",
    "indexing.scatter": "scatter scatter_p",
    "indexing.scatter_apply": "scatter_apply scatter_apply_p",
    "indexing.scatter_combining": """
        scatter_add scatter_add_p scatter_max scatter_max_p scatter_min scatter_min_p scatter_mul scatter_mul_p
        scatter_sub scatter_sub_p
    """,
    "linear.dot": "batch_matmul canonical_numbers dot dot_general dot_general_p",
    "linear.precision": "DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike",
    "linear.ragged_dot": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general ragged_dot_general_p",
    "linear.scaled_dot": "scaled_dot scaled_dot_p",
    "reductions.associative_scan": "associative_scan",
    "reductions.cumulative": """
        cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum cumsum_p
    """,
    "reductions.general": "reduce reduce_p",
    "reductions.reduce": """
        argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p reduce_min reduce_min_p
        reduce_or reduce_or_p reduce_prod reduce_prod_p reduce_sum reduce_sum_p reduce_xor reduce_xor_p
    """,
    "shape.broadcasting": "broadcast broadcast_in_dim broadcast_in_dim_p broadcast_shapes broadcast_to expand_dims",
    "shape.joining": "concatenate concatenate_p split split_p stack stack_p unstack unstack_p",
    "shape.likeness": "broadcast_like broadcast_to_rank dtype shape_as_value",
    "shape.rearranging": "collapse reshape reshape_p rev rev_p squeeze squeeze_p transpose transpose_p",
    "shape.slicing": "index_in_dim pad pad_p slice slice_in_dim slice_p",
    "shape.tiling": "tile tile_p",
    "sorting.sort": "sort sort_key_val sort_p",
    "sorting.top_k": "approx_max_k approx_min_k approx_top_k_p top_k top_k_p",
    "sorting.total_order": "eq_to_p le_to_p lt_to_p",
    "special.bessel": "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p",
    "special.error_functions": "erf erf_inv erf_inv_p erf_p erfc erfc_p",
    "special.gamma": "digamma digamma_p lgamma lgamma_p polygamma polygamma_p zeta zeta_p",
    "special.incomplete": """
        betainc igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p random_gamma_grad
        random_gamma_grad_p regularized_incomplete_beta_p
    """,
    "transforms.batched": "batched_p",
    "values.pack": "pack pack_p unpack unpack_p",
    "values.rearranged": "choose rearranged_p",
    "windows.general": "reduce_window reduce_window_p",
    "windows.geometry": "padtype_to_pads reduce_window_shape_tuple",
    "windows.reduce_window": "reduce_window_max_p reduce_window_min_p reduce_window_sum_p",
    "windows.select_and_scatter": "select_and_scatter_p",
    "windows.selection": "select_and_gather_add_p select_and_scatter_add_p",
}

# Helpers for the functions of other plugins, which find them by name; they are hidden from users.
_SHARED = """
    as_operand asarray beside beyond broadcast_operands broadcast_to canonical_numbers canonical_shape
    check_dtype_promotion check_rank_promotion choose convert_operand dtypes_of fill_scalar from_sequence
    in_dtype is_python_scalar is_several lazy_names make_scalar named place promote_dtypes promote_operands
    requested_dtype yielding_scalar zeros_like_array
"""

__getattr__, __dir__, __all__ = _lazy_names("lax", "corejax_lax_basic", _MODULES, globals(), hidden=_SHARED)


def _import_all() -> None:
    """Import every module, and so register every primitive."""
    for module in _MODULES:
        _importlib.import_module(f"corejax_lax_basic.{module}")
