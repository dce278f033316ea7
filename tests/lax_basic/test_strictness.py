"""What `jax.lax` refuses, `corejax.lax` refuses: dtypes that differ, ranks, axes, sizes that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import Primitive
from corejax_lax_basic._base.type_rules import numpy_name

F, G = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
D, I, B = F.astype(np.float64), F.astype(np.int32), F > 0
C = F.astype(np.complex64)
V = np.ones(3, np.float32)

# name of the function, and wrong arguments
WRONG: list[tuple[str, Any]] = [
    *(
        (name, lambda m, name=name: getattr(m, name)(F, I))
        for name in ("add", "sub", "mul", "div", "rem", "max", "min")
    ),
    *(
        (name, lambda m, name=name: getattr(m, name)(F, G))
        for name in ("add", "mul", "max", "eq", "lt", "nextafter", "atan2")
    ),
    *((name, lambda m, name=name: getattr(m, name)(F, V)) for name in ("add", "sub", "div", "ge", "pow")),
    *(
        (name, lambda m, name=name: getattr(m, name)(I))
        for name in ("sin", "exp", "log", "sqrt", "tanh", "floor", "rsqrt")
    ),
    *((name, lambda m, name=name: getattr(m, name)(C, C)) for name in ("lt", "ge", "rem")),
    *((name, lambda m, name=name: getattr(m, name)(F, F)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *((name, lambda m, name=name: getattr(m, name)(F)) for name in ("bitwise_not", "real", "imag", "population_count")),
    ("complex", lambda m: m.complex(F, D)),
    ("is_finite", lambda m: m.is_finite(I)),
    ("neg", lambda m: m.neg(B)),
    ("clamp", lambda m: m.clamp(I, F, F)),
    ("clamp", lambda m: m.clamp(V, F, V)),
    ("select", lambda m: m.select(I.astype(np.float32), F, F)),
    ("select", lambda m: m.select(B, F, I)),
    ("select", lambda m: m.select(B, F, G)),
    ("select_n", lambda m: m.select_n(B, F, F, F)),
    ("integer_pow", lambda m: m.integer_pow(F, 0.5)),
    ("broadcast_in_dim", lambda m: m.broadcast_in_dim(V, (2, 4), (1,))),
    ("broadcast_in_dim", lambda m: m.broadcast_in_dim(V, (2, 3), (2,))),
    ("broadcast_in_dim", lambda m: m.broadcast_in_dim(F, (2, 3), (0,))),
    ("broadcast", lambda m: m.broadcast(F, (-1,))),
    ("reshape", lambda m: m.reshape(F, (4,))),
    ("reshape", lambda m: m.reshape(F, (-1, -1))),
    ("transpose", lambda m: m.transpose(F, (0, 0))),
    ("transpose", lambda m: m.transpose(F, (0,))),
    ("squeeze", lambda m: m.squeeze(F, (0,))),
    ("expand_dims", lambda m: m.expand_dims(F, (5,))),
    ("rev", lambda m: m.rev(F, (2,))),
    ("concatenate", lambda m: m.concatenate([F, G], 0)),
    ("concatenate", lambda m: m.concatenate([F, I], 0)),
    ("concatenate", lambda m: m.concatenate([], 0)),
    ("concatenate", lambda m: m.concatenate([F, F], 2)),
    ("pad", lambda m: m.pad(F, np.int32(0), ((0, 0, 0), (0, 0, 0)))),
    ("pad", lambda m: m.pad(F, np.float32(0), ((0, 0, 0),))),
    ("pad", lambda m: m.pad(F, V, ((0, 0, 0), (0, 0, 0)))),
    ("pad", lambda m: m.pad(F, np.float32(0), ((0, 0, -1), (0, 0, 0)))),
    ("slice", lambda m: m.slice(F, (0, 0), (3, 3))),
    ("slice", lambda m: m.slice(F, (1, 1), (0, 3))),
    ("slice", lambda m: m.slice(F, (0,), (1,))),
    ("dynamic_slice", lambda m: m.dynamic_slice(F, (0,), (1, 1))),
    ("dynamic_slice", lambda m: m.dynamic_slice(F, (0, 0), (3, 1))),
    ("dynamic_slice", lambda m: m.dynamic_slice(F, (0.5, 0), (1, 1))),
    ("dynamic_update_slice", lambda m: m.dynamic_update_slice(F, I, (0, 0))),
    ("dynamic_update_slice", lambda m: m.dynamic_update_slice(F, V, (0, 0))),
    ("dynamic_update_slice", lambda m: m.dynamic_update_slice(F, G, (0, 0))),
    ("split", lambda m: m.split(F, (1, 2))),
    ("stack", lambda m: m.stack([F, G])),
    ("stack", lambda m: m.stack([F, I])),
    ("unstack", lambda m: m.unstack(np.float32(1))),
    ("tile", lambda m: m.tile(F, (2,))),
    ("iota", lambda m: m.iota(np.float32, -1)),
    ("broadcasted_iota", lambda m: m.broadcasted_iota(np.int32, (2,), 1)),
    ("full", lambda m: m.full((2,), V)),
    ("argmax", lambda m: m.argmax(F, 2, np.int32)),
    ("argmax", lambda m: m.argmax(F, 0, np.float32)),
    ("argmin", lambda m: m.argmin(F[:0], 0, np.int32)),
    ("reduce_sum", lambda m: m.reduce_sum(F, (2,))),
    ("reduce_max", lambda m: m.reduce_max(F, (0, 0))),
    ("reduce_and", lambda m: m.reduce_and(F, (0,))),
    ("cumsum", lambda m: m.cumsum(F, 2)),
    ("dot", lambda m: m.dot(F, F)),
    ("dot", lambda m: m.dot(F, np.float32(2))),
    ("dot_general", lambda m: m.dot_general(F, G, (((1,), (1,)), ((), ())))),
    ("dot_general", lambda m: m.dot_general(F, G, (((2,), (0,)), ((), ())))),
    ("dot_general", lambda m: m.dot_general(F, G, (((1,), (0,)), ((1,), (0,))))),
    ("dot_general", lambda m: m.dot_general(F, G, (((1,), (0, 1)), ((), ())))),
    ("dot", lambda m: m.dot(F, G, precision="best")),
    ("dot", lambda m: m.dot(I, I.T, preferred_element_type=np.int8)),
    ("batch_matmul", lambda m: m.batch_matmul(F, V)),
    ("sort", lambda m: m.sort((F, G))),
    ("sort", lambda m: m.sort((F, F), num_keys=3)),
    ("sort", lambda m: m.sort(F, 2)),
    ("top_k", lambda m: m.top_k(F, 4)),
    ("top_k", lambda m: m.top_k(C, 1)),
    ("top_k", lambda m: m.top_k(np.float32(1), 1)),
    ("approx_max_k", lambda m: m.approx_max_k(I, 1)),
    ("approx_min_k", lambda m: m.approx_min_k(F, 4)),
    ("ragged_dot", lambda m: m.ragged_dot(F, np.ones((2, 3, 2), np.float32), np.ones(3, np.int32))),
    ("ragged_dot", lambda m: m.ragged_dot(F, np.ones((2, 3, 2), np.float32), np.ones(2, np.float32))),
    ("after_all", lambda m: m.after_all(F)),
    ("index_in_dim", lambda m: m.index_in_dim(F, 4, 0)),
    ("shift_left", lambda m: m.shift_left(F, F)),
    ("reduce_xor", lambda m: m.reduce_xor(F, (0,))),
    *(
        (name, lambda m, name=name: getattr(m, name)(0, 0.0))
        for name in ("add", "sub", "mul", "div", "rem", "max", "min", "lt", "gt", "ge", "le", "eq", "ne", "atan2")
    ),
    ("clamp", lambda m: m.clamp(0, 1.5, 2)),
    *((name, lambda m, name=name: getattr(m, name)(F, -1, np.int32)) for name in ("argmax", "argmin")),
    *(
        (name, lambda m, name=name, axes=axes: getattr(m, name)(F, axes))
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
        for axes in ((-1,), 1, None)
    ),
    ("reduce_and", lambda m: m.reduce_and(B, 1)),
    ("index_take", lambda m: m.index_take(F, (np.array([0]),), (-1,))),
    ("broadcasted_iota", lambda m: m.broadcasted_iota(np.int32, (2, 3), -1)),
    ("iota", lambda m: m.iota(None, 3)),
    ("convert_element_type", lambda m: m.convert_element_type(F, None)),
    ("bitcast_convert_type", lambda m: m.bitcast_convert_type(F, None)),
    ("slice", lambda m: m.slice(F, (0, 0), (1, 2), (1,))),
    ("slice", lambda m: m.slice(F, (0, 0), (1, 2), ())),
    ("dynamic_slice", lambda m: m.dynamic_slice(F, (np.int32(1), np.int16(1)), (1, 1))),
    ("dynamic_update_slice", lambda m: m.dynamic_update_slice(F, F[:1], (np.int32(1), np.int16(1)))),
    ("rng_uniform", lambda m: m.rng_uniform(np.int32(0), np.float32(1), (2,))),
]


@pytest.mark.parametrize(("name", "f"), WRONG, ids=[f"{i} {name}" for i, (name, _) in enumerate(WRONG)])
def test_wrong_arguments_are_refused(name: str, f: Any) -> None:
    """With a type of error that JAX has for such things, and the function's name."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True), pytest.raises((TypeError, ValueError, IndexError)):
        f(jax.lax)
    for transformed in (lambda: f(lax), lambda: corejax.make_jaxpr(lambda: f(lax))()):
        with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as caught:
            transformed()
        assert str(caught.value)


def test_advice_names_functions_that_there_are() -> None:
    """A function of `corejax.numpy` that promotes is named only where there is one."""
    for name in {p.name for n in dir(lax) if isinstance(p := getattr(lax, n), Primitive)}:
        advised = numpy_name(name)
        assert advised is None or hasattr(corejax.numpy, advised.removeprefix("corejax.numpy.")), name
    assert numpy_name("add") == "corejax.numpy.add" and numpy_name("conv_general_dilated") is None
