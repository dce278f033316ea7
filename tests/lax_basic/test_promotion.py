"""One promotion of operands: where operators, `corejax.lax` and `corejax.numpy` agree, and where they do not."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import get_aval

# Each way of multiplying, on one line of the program: notes name the user's line and column.
_FAILING_RULES = """
import json, operator
import corejax, corejax.numpy as jnp
from corejax import extend, lax

def failing(*args, **params):
    raise RuntimeError("broken")

runs = {
    "impl": lambda f, x: f(x, x),
    "jvp": lambda f, x: corejax.jvp(f, (x, x), (x, x)),
    "vmap": lambda f, x: corejax.vmap(f)(x, x),
    "transpose": lambda f, x: corejax.grad(lambda y: lax.reduce_sum(f(y, x), (0,)))(x),
    "abstract_eval": lambda f, x: corejax.make_jaxpr(f)(x, x),
}
x = jnp.ones(3)
notes = {}
for kind, run in runs.items():
    registry = extend.registries[kind]
    kept = registry.rule_of(lax.mul_p).fn
    registry.register(lax.mul_p, failing, override=True)
    for name, multiply in {"*": operator.mul, "lax": lax.mul, "numpy": jnp.multiply}.items():
        try:
            run(lambda x, y: multiply(x, y), x)
        except RuntimeError as error:
            notes[kind + " " + name] = error.__notes__
    registry.register(lax.mul_p, kept, override=True)
    lax.mul_p._memo.clear()
print(json.dumps(notes))
"""


def test_notes_on_a_failing_rule_are_the_same_whichever_way_the_primitive_was_bound() -> None:
    done = subprocess.run([sys.executable, "-c", _FAILING_RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    notes = json.loads(done.stdout)
    for kind in ("impl", "jvp", "vmap", "transpose", "abstract_eval"):
        ways = [notes.get(f"{kind} {way}") for way in ("*", "lax", "numpy")]
        assert ways[0] == ways[1] == ways[2], ways
        assert len(ways[0]) == 1 and "of primitive 'mul'" in ways[0][0]


class Size(IntEnum):
    """A subclass of `int`, which counts as a Python scalar."""

    LARGE = 3


WAYS = {"operator": operator.mul, "lax": lax.mul, "numpy": jnp.multiply}


@pytest.mark.parametrize("scalar", [2, 2.5, 1j, Size.LARGE])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.complex64])
def test_scalars_yield_in_every_way_alike(dtype: Any, scalar: Any) -> None:
    x = jnp.ones(3, dtype)
    promoted = get_aval(jnp.multiply(x, scalar))
    assert get_aval(x * scalar) is promoted and get_aval(scalar * x) is promoted
    if promoted.dtype == x.dtype and not isinstance(scalar, Size):
        assert get_aval(lax.mul(x, scalar)) is promoted and get_aval(lax.mul(scalar, x)) is promoted
    elif promoted.dtype != x.dtype:  # the array would have to yield, which `corejax.lax` leaves to the caller
        with pytest.raises(TypeError, match="the same dtypes"):
            lax.mul(x, scalar)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_scalar_yields_to_what_the_width_in_force_makes_of_it(way: Any) -> None:
    weak = jnp.asarray(1.0)
    assert way(weak, 2.0).dtype == np.float32
    with corejax.config.override(default_dtype_bits=64):
        assert way(weak, 2.0).dtype == np.float64
    assert way(weak, 2.0).dtype == np.float32


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_integer_that_does_not_fit_is_refused_in_every_way(way: Any) -> None:
    x = jnp.ones(3, np.int8)
    for _ in range(2):  # also when the decision is remembered
        with pytest.raises(OverflowError):
            way(x, 1000)
    assert np.isinf(way(jnp.ones(2, np.float16), 1e30)).all()


def test_promote_operands_gives_one_dtype_and_shape_but_leaves_rank_0() -> None:
    x, y, z = lax.promote_operands(jnp.ones((2, 1), np.int8), jnp.ones(3, np.float16), 2)
    assert [v.aval.str_short() for v in (x, y, z)] == ["f16[2,3]", "f16[2,3]", "f16[]"]
    with pytest.raises(ValueError, match=r"^meet: Incompatible shapes .*: operands f32\[2\] and f32\[3\]"):
        lax.promote_operands(jnp.ones(2), jnp.ones(3), name="meet")
    with pytest.raises(ValueError, match="axis -1 has sizes"):
        lax.promote_operands(jnp.ones(2), jnp.ones(3))


def test_as_operand_takes_arrays_and_scalars_only() -> None:
    assert lax.as_operand([1]) is NotImplemented
    assert type(lax.as_operand(Size.LARGE)) is int
    assert lax.as_operand(np.float32(2)).aval.str_short() == "f32[]"
