"""`corejax.lax` beside `jax.lax`: names, signatures, what `dir` and completion show."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corejax import lax
from corejax.extend import primitives
from tests.signatures import difference, names_in, public

# What other plugins will have: collectives and sharding, random bits, Fourier transforms.
ELSEWHERE = names_in(
    """
    FftType RandomAlgorithm all_gather all_gather_p all_to_all all_to_all_p axis_index axis_index_p axis_size copy_p
    dce_sink dce_sink_p device_put_p fft fft_p pbroadcast pcast platform_dependent pmax pmax_p pmean pmin pmin_p
    ppermute ppermute_p precv psend pshuffle psum psum_p psum_scatter pswapaxes ragged_all_to_all ragged_all_to_all_p
    random_gamma_grad rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p sharding_constraint_p stage
    stage_p with_sharding_constraint
    """
)

# What is still to be written; a name is struck out when it is there.
MISSING = names_in(
    """
    AccuracyMode ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers RoundingMethod Tolerance acos acos_p acosh
    acosh_p asin asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh atanh_p bessel_i0e bessel_i0e_p bessel_i1e
    bessel_i1e_p betainc bitcast_convert_type bitcast_convert_type_p cbrt cbrt_p clz clz_p conv conv_dimension_numbers
    conv_general_dilated conv_general_dilated_local conv_general_dilated_p conv_general_dilated_patches
    conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose conv_transpose_shape_tuple
    conv_with_general_padding cosh cosh_p digamma digamma_p erf erf_inv erf_inv_p erf_p erfc erfc_p exp2 exp2_p igamma
    igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p index_take lgamma lgamma_p mulhi mulhi_p nextafter
    nextafter_p padtype_to_pads polygamma polygamma_p population_count population_count_p reciprocal reduce reduce_p
    reduce_precision reduce_precision_p reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p
    reduce_window_shape_tuple reduce_window_sum_p reduce_xor reduce_xor_p regularized_incomplete_beta_p round round_p
    scatter_sub scatter_sub_p select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p shift_left
    shift_left_p shift_right_arithmetic shift_right_arithmetic_p shift_right_logical shift_right_logical_p sinh sinh_p
    square_p zeta zeta_p
    """
)

# Arguments that only jax has, or only corejax: how exactly XLA computes elementwise functions, a progress bar.
IGNORED = frozenset({"accuracy", "progress", "_split_transpose", "out_dtype"})
# Signatures that differ on purpose: more may be left out, or an argument may go by its name too.
MORE = {"argmax", "argmin", "squeeze", "optimization_barrier"}


def test_every_name_is_there() -> None:
    theirs = pytest.importorskip("jax").lax
    absent = {name for name in public(theirs) if not hasattr(lax, name)}
    assert not absent - ELSEWHERE - MISSING


def test_signatures_are_jaxs() -> None:
    theirs = pytest.importorskip("jax").lax
    both = [name for name in public(theirs) if hasattr(lax, name) and name not in MORE]
    found = {name: difference(getattr(lax, name), getattr(theirs, name), IGNORED) for name in both}
    assert not {name: text for name, text in found.items() if text}


def test_dir_shows_what_there_is_and_nothing_else() -> None:
    names = [n for n in dir(lax) if not n.startswith("_")]
    assert not {"Any", "sys", "annotations", "exported", "np"} & set(names)
    assert {
        "scan",
        "cond",
        "while_loop",
        "scan_p",
        "cond_p",
        "while_p",
        "optimization_barrier",
        "sin",
        "sort_p",
    } <= set(names)
    for name in names:
        getattr(lax, name)
        if name.endswith("_p"):
            assert getattr(lax, name) in primitives.values()


def test_dir_loads_nothing() -> None:
    """Completion in a fresh process names what plugins contribute, though none of it is imported."""
    code = (
        "import sys; from corejax import lax; names = dir(lax); "
        "assert 'scan' in names and 'fori_loop' in names, names; "
        "assert 'corejax_control_flow.loops.scan' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_primitives_belong_to_a_plugin() -> None:
    found = [getattr(lax, name) for name in dir(lax) if name.endswith("_p")]
    assert not [p for p in found if not p.provenance.module.startswith("corejax_")]
