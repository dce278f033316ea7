"""`corejax.lax`: the array primitives as functions, and what other plugins export under `lax.` (`scan`, `cond`)."""

from __future__ import annotations

import sys
from typing import Any

from corejax.extend import exported, is_import_from, missing_name
from corejax_lax_basic._base.constants import asarray as asarray
from corejax_lax_basic.conversion.convert import convert_element_type as convert_element_type
from corejax_lax_basic.conversion.convert import convert_element_type_p as convert_element_type_p
from corejax_lax_basic.conversion.convert import stop_gradient as stop_gradient
from corejax_lax_basic.conversion.convert import stop_gradient_p as stop_gradient_p
from corejax_lax_basic.creation.filled import full as full
from corejax_lax_basic.creation.filled import full_like as full_like
from corejax_lax_basic.creation.filled import zeros_like_array as zeros_like_array
from corejax_lax_basic.elementwise.arithmetic import add as add
from corejax_lax_basic.elementwise.arithmetic import add_p as add_p
from corejax_lax_basic.elementwise.arithmetic import div as div
from corejax_lax_basic.elementwise.arithmetic import div_p as div_p
from corejax_lax_basic.elementwise.arithmetic import integer_pow as integer_pow
from corejax_lax_basic.elementwise.arithmetic import integer_pow_p as integer_pow_p
from corejax_lax_basic.elementwise.arithmetic import max as max
from corejax_lax_basic.elementwise.arithmetic import max_p as max_p
from corejax_lax_basic.elementwise.arithmetic import min as min
from corejax_lax_basic.elementwise.arithmetic import min_p as min_p
from corejax_lax_basic.elementwise.arithmetic import mul as mul
from corejax_lax_basic.elementwise.arithmetic import mul_p as mul_p
from corejax_lax_basic.elementwise.arithmetic import neg as neg
from corejax_lax_basic.elementwise.arithmetic import neg_p as neg_p
from corejax_lax_basic.elementwise.arithmetic import pow as pow
from corejax_lax_basic.elementwise.arithmetic import pow_p as pow_p
from corejax_lax_basic.elementwise.arithmetic import rem as rem
from corejax_lax_basic.elementwise.arithmetic import rem_p as rem_p
from corejax_lax_basic.elementwise.arithmetic import square as square
from corejax_lax_basic.elementwise.arithmetic import sub as sub
from corejax_lax_basic.elementwise.arithmetic import sub_p as sub_p
from corejax_lax_basic.elementwise.comparison import eq as eq
from corejax_lax_basic.elementwise.comparison import eq_p as eq_p
from corejax_lax_basic.elementwise.comparison import ge as ge
from corejax_lax_basic.elementwise.comparison import ge_p as ge_p
from corejax_lax_basic.elementwise.comparison import gt as gt
from corejax_lax_basic.elementwise.comparison import gt_p as gt_p
from corejax_lax_basic.elementwise.comparison import le as le
from corejax_lax_basic.elementwise.comparison import le_p as le_p
from corejax_lax_basic.elementwise.comparison import lt as lt
from corejax_lax_basic.elementwise.comparison import lt_p as lt_p
from corejax_lax_basic.elementwise.comparison import ne as ne
from corejax_lax_basic.elementwise.comparison import ne_p as ne_p
from corejax_lax_basic.elementwise.complex_numbers import complex as complex
from corejax_lax_basic.elementwise.complex_numbers import complex_p as complex_p
from corejax_lax_basic.elementwise.complex_numbers import conj as conj
from corejax_lax_basic.elementwise.complex_numbers import conj_p as conj_p
from corejax_lax_basic.elementwise.complex_numbers import imag as imag
from corejax_lax_basic.elementwise.complex_numbers import imag_p as imag_p
from corejax_lax_basic.elementwise.complex_numbers import real as real
from corejax_lax_basic.elementwise.complex_numbers import real_p as real_p
from corejax_lax_basic.elementwise.logical import and_p as and_p
from corejax_lax_basic.elementwise.logical import bitwise_and as bitwise_and
from corejax_lax_basic.elementwise.logical import bitwise_not as bitwise_not
from corejax_lax_basic.elementwise.logical import bitwise_or as bitwise_or
from corejax_lax_basic.elementwise.logical import bitwise_xor as bitwise_xor
from corejax_lax_basic.elementwise.logical import not_p as not_p
from corejax_lax_basic.elementwise.logical import or_p as or_p
from corejax_lax_basic.elementwise.logical import xor_p as xor_p
from corejax_lax_basic.elementwise.select import clamp as clamp
from corejax_lax_basic.elementwise.select import clamp_p as clamp_p
from corejax_lax_basic.elementwise.select import select as select
from corejax_lax_basic.elementwise.select import select_n as select_n
from corejax_lax_basic.elementwise.select import select_n_p as select_n_p
from corejax_lax_basic.elementwise.unary import abs as abs
from corejax_lax_basic.elementwise.unary import abs_p as abs_p
from corejax_lax_basic.elementwise.unary import ceil as ceil
from corejax_lax_basic.elementwise.unary import ceil_p as ceil_p
from corejax_lax_basic.elementwise.unary import cos as cos
from corejax_lax_basic.elementwise.unary import cos_p as cos_p
from corejax_lax_basic.elementwise.unary import exp as exp
from corejax_lax_basic.elementwise.unary import exp_p as exp_p
from corejax_lax_basic.elementwise.unary import expm1 as expm1
from corejax_lax_basic.elementwise.unary import expm1_p as expm1_p
from corejax_lax_basic.elementwise.unary import floor as floor
from corejax_lax_basic.elementwise.unary import floor_p as floor_p
from corejax_lax_basic.elementwise.unary import is_finite as is_finite
from corejax_lax_basic.elementwise.unary import is_finite_p as is_finite_p
from corejax_lax_basic.elementwise.unary import log as log
from corejax_lax_basic.elementwise.unary import log1p as log1p
from corejax_lax_basic.elementwise.unary import log1p_p as log1p_p
from corejax_lax_basic.elementwise.unary import log_p as log_p
from corejax_lax_basic.elementwise.unary import logistic as logistic
from corejax_lax_basic.elementwise.unary import logistic_p as logistic_p
from corejax_lax_basic.elementwise.unary import rsqrt as rsqrt
from corejax_lax_basic.elementwise.unary import rsqrt_p as rsqrt_p
from corejax_lax_basic.elementwise.unary import sign as sign
from corejax_lax_basic.elementwise.unary import sign_p as sign_p
from corejax_lax_basic.elementwise.unary import sin as sin
from corejax_lax_basic.elementwise.unary import sin_p as sin_p
from corejax_lax_basic.elementwise.unary import sqrt as sqrt
from corejax_lax_basic.elementwise.unary import sqrt_p as sqrt_p
from corejax_lax_basic.elementwise.unary import tan as tan
from corejax_lax_basic.elementwise.unary import tan_p as tan_p
from corejax_lax_basic.elementwise.unary import tanh as tanh
from corejax_lax_basic.elementwise.unary import tanh_p as tanh_p
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice as dynamic_slice
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from corejax_lax_basic.indexing.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from corejax_lax_basic.linear.dot import batch_matmul as batch_matmul
from corejax_lax_basic.linear.dot import dot as dot
from corejax_lax_basic.linear.dot import dot_general as dot_general
from corejax_lax_basic.linear.dot import dot_general_p as dot_general_p
from corejax_lax_basic.reductions.associative_scan import associative_scan as associative_scan
from corejax_lax_basic.reductions.cumulative import cumlogsumexp as cumlogsumexp
from corejax_lax_basic.reductions.cumulative import cumlogsumexp_p as cumlogsumexp_p
from corejax_lax_basic.reductions.cumulative import cummax as cummax
from corejax_lax_basic.reductions.cumulative import cummax_p as cummax_p
from corejax_lax_basic.reductions.cumulative import cummin as cummin
from corejax_lax_basic.reductions.cumulative import cummin_p as cummin_p
from corejax_lax_basic.reductions.cumulative import cumprod as cumprod
from corejax_lax_basic.reductions.cumulative import cumprod_p as cumprod_p
from corejax_lax_basic.reductions.cumulative import cumsum as cumsum
from corejax_lax_basic.reductions.cumulative import cumsum_p as cumsum_p
from corejax_lax_basic.reductions.reduce import argmax as argmax
from corejax_lax_basic.reductions.reduce import argmax_p as argmax_p
from corejax_lax_basic.reductions.reduce import argmin as argmin
from corejax_lax_basic.reductions.reduce import argmin_p as argmin_p
from corejax_lax_basic.reductions.reduce import reduce_and as reduce_and
from corejax_lax_basic.reductions.reduce import reduce_and_p as reduce_and_p
from corejax_lax_basic.reductions.reduce import reduce_max as reduce_max
from corejax_lax_basic.reductions.reduce import reduce_max_p as reduce_max_p
from corejax_lax_basic.reductions.reduce import reduce_min as reduce_min
from corejax_lax_basic.reductions.reduce import reduce_min_p as reduce_min_p
from corejax_lax_basic.reductions.reduce import reduce_or as reduce_or
from corejax_lax_basic.reductions.reduce import reduce_or_p as reduce_or_p
from corejax_lax_basic.reductions.reduce import reduce_prod as reduce_prod
from corejax_lax_basic.reductions.reduce import reduce_prod_p as reduce_prod_p
from corejax_lax_basic.reductions.reduce import reduce_sum as reduce_sum
from corejax_lax_basic.reductions.reduce import reduce_sum_p as reduce_sum_p
from corejax_lax_basic.shape.broadcasting import broadcast as broadcast
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim as broadcast_in_dim
from corejax_lax_basic.shape.broadcasting import broadcast_in_dim_p as broadcast_in_dim_p
from corejax_lax_basic.shape.broadcasting import broadcast_shapes as broadcast_shapes
from corejax_lax_basic.shape.broadcasting import expand_dims as expand_dims
from corejax_lax_basic.shape.joining import broadcasted_iota as broadcasted_iota
from corejax_lax_basic.shape.joining import concatenate as concatenate
from corejax_lax_basic.shape.joining import concatenate_p as concatenate_p
from corejax_lax_basic.shape.joining import iota as iota
from corejax_lax_basic.shape.joining import iota_p as iota_p
from corejax_lax_basic.shape.joining import pad as pad
from corejax_lax_basic.shape.joining import pad_p as pad_p
from corejax_lax_basic.shape.rearranging import collapse as collapse
from corejax_lax_basic.shape.rearranging import reshape as reshape
from corejax_lax_basic.shape.rearranging import reshape_p as reshape_p
from corejax_lax_basic.shape.rearranging import rev as rev
from corejax_lax_basic.shape.rearranging import rev_p as rev_p
from corejax_lax_basic.shape.rearranging import squeeze as squeeze
from corejax_lax_basic.shape.rearranging import squeeze_p as squeeze_p
from corejax_lax_basic.shape.rearranging import transpose as transpose
from corejax_lax_basic.shape.rearranging import transpose_p as transpose_p
from corejax_lax_basic.shape.slicing import index_in_dim as index_in_dim
from corejax_lax_basic.shape.slicing import slice as slice
from corejax_lax_basic.shape.slicing import slice_in_dim as slice_in_dim
from corejax_lax_basic.shape.slicing import slice_p as slice_p


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # never exported by a plugin
        raise AttributeError(f"module 'corejax.lax' has no attribute {name!r}")
    found = exported("lax." + name)
    if found is None:
        raise missing_name("lax." + name, importing=is_import_from(sys._getframe(1)))
    globals()[name] = found
    return found
