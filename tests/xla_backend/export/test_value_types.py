"""Values of value types in exported functions, here and in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax
from corejax.extend import ShapedArray
from corejax.extend.types import ValueType
from tests.value_types import Stacked, Symmetric, dense, matrix, symmetric

S = symmetric(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
CONSTANT = symmetric(jnp.array([[1.0, 0.5], [0.5, 0.0]]))


class Length(ValueType):
    """Numbers in a unit."""

    def parts(self) -> tuple[ShapedArray, ...]:
        return (ShapedArray(self.shape, self.dtype),)


def steps(s: Any, x: Any) -> Any:
    """A loop that carries a value, stacks values and uses a constant one."""

    def step(carry: Any, _: Any) -> Any:
        return symmetric(0.5 * dense(carry) + dense(CONSTANT)), carry

    last, each = lax.scan(step, s, None, length=3)
    return last, each, dense(last) @ x


def through_artifact(f: Any, *args: Any, vjp_order: int = 0) -> Any:
    return export.deserialize(export.export(corejax.jit(f))(*args).serialize(vjp_order=vjp_order))


def equal(got: Any, want: Any) -> None:
    assert corejax.typeof(got) is corejax.typeof(want)
    for one, other in zip(lax.unpack(got), lax.unpack(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_arguments_results_and_carries() -> None:
    x = jnp.ones(2)
    found = through_artifact(steps, S, x, vjp_order=2)
    assert found.in_avals == (S.aval, x.aval)
    assert found.out_avals == (S.aval, S.aval.update(shape=(3, 2, 2)), x.aval)
    want = steps(S, x)
    for call in (found.call, corejax.jit(found.call)):
        got = call(S, x)
        equal(got[0], want[0])
        equal(got[1], want[1])
        np.testing.assert_allclose(got[2], want[2], rtol=1e-6)
    loss = lambda call: lambda s: jnp.sum(jnp.sin(call(s, x)[2]))
    equal(corejax.grad(loss(found.call))(S), corejax.grad(loss(steps))(S))
    tangent = corejax.jvp(lambda s: found.call(s, x)[2], (S,), (CONSTANT,))[1]
    np.testing.assert_allclose(tangent, corejax.jvp(lambda s: steps(s, x)[2], (S,), (CONSTANT,))[1], rtol=1e-6)


def test_batches_of_calls_and_parts_elsewhere() -> None:
    x = matrix(2, 3)
    value = lax.pack(Stacked(x.shape, x.dtype), x, jnp.stack([x, 2 * x]))
    found = through_artifact(lambda v: lax.pack(v.aval, *(2 * part for part in lax.unpack(v))), value)
    batch = corejax.vmap(lambda k: lax.pack(value.aval, *(k * part for part in value.parts)))(jnp.arange(3.0))
    got = corejax.vmap(found.call)(batch)
    equal(got, lax.pack(batch.aval, *(2 * part for part in batch.parts)))


def test_unused_parts_and_symbolic_sizes() -> None:
    (b,) = export.symbolic_shape("b")
    batch = corejax.vmap(symmetric)(matrix(4, 2, 2))
    types = corejax.eval_shape(corejax.vmap(symmetric), corejax.ShapeDtypeStruct((b, 2, 2), "float32"))
    found = through_artifact(lambda s: symmetric(2 * dense(s)), types)
    equal(found.call(batch), symmetric(2 * dense(batch)))
    stacked = lax.pack(Stacked((2,), "float32"), jnp.ones(2), jnp.zeros((2, 2)))
    found = through_artifact(lambda v: lax.unpack(v)[1] + 1, stacked)
    np.testing.assert_array_equal(found.call(stacked), np.ones((2, 2)))


def test_fields_are_part_of_the_type() -> None:
    length = lax.pack(Length((2,), "float32", unit="m", powers=(1, -2)), jnp.ones(2))
    found = through_artifact(lambda x: x, length)
    assert found.in_avals == (length.aval,)
    equal(found.call(length), length)
    other = lax.pack(Length((2,), "float32", unit="s"), jnp.ones(2))
    with pytest.raises(ValueError, match=r"takes Length\[f32\[2\], powers=\(1, -2\), unit='m'\] as argument args\[0\]"):
        found.call(other)
    with pytest.raises(ValueError, match=r"args\[0\], got f32\[2\]"):
        found.call(jnp.ones(2))
    strange = lax.pack(Length((2,), "float32", unit=object), jnp.ones(2))
    with pytest.raises(ValueError, match="its field unit is <class 'object'> of type type, and fields must be strings"):
        export.export(corejax.jit(lambda x: x))(strange).serialize()


def test_a_type_that_is_stored_otherwise_here(monkeypatch: pytest.MonkeyPatch) -> None:
    data = export.export(corejax.jit(dense))(S).serialize()
    monkeypatch.setattr(Symmetric, "parts", lambda self: (ShapedArray(self.shape, self.dtype),))
    with pytest.raises(ValueError, match=r"Symmetric\[f32\[2,2\]\], stored in \(f32\[3\]\); in this .*f32\[2,2\]"):
        export.deserialize(data)


_LOAD = """
import sys
import corejax.numpy as jnp
from corejax import export
exec(sys.argv[2])
try:
    found = export.deserialize(open(sys.argv[1], "rb").read())
except ValueError as error:
    print(error)
else:
    last, each, y = found.call(value_types.symmetric(jnp.array([[2.0, 1.0], [1.0, 3.0]])), jnp.ones(2))
    print(last.aval, each.aval, y.tolist())
"""


def test_another_process(tmp_path: Path) -> None:
    path = tmp_path / "steps.bin"
    path.write_bytes(export.export(corejax.jit(steps))(S, jnp.ones(2)).serialize())
    root = Path(__file__).parents[3]

    def load(first: str) -> str:
        command = [sys.executable, "-c", _LOAD, str(path), first]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout

    y = steps(S, jnp.ones(2))[2].tolist()
    assert load("from tests import value_types") == f"Symmetric[float32[2,2]] Symmetric[float32[3,2,2]] {y}\n"
    assert "values of type Symmetric, which is not known in this process: install the plugin" in load("")
