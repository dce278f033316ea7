"""The primitive `fft` and `corejax.lax.fft`: what `corejax verify` does not ask."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

jax = pytest.importorskip("jax")

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


def _operand(kind, shape, dtype=np.float64, seed=0):
    """Numbers of the transform's domain whose result has the shape (of FFT, IFFT and IRFFT)."""
    rng = np.random.default_rng(seed)
    if kind == "RFFT":
        return rng.standard_normal(shape).astype(dtype)
    if kind == "IRFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(
        np.complex64 if dtype == np.float32 else np.complex128
    )


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_three_axes_compiled_are_what_they_are_eagerly(kind):
    lengths = (3, 2, 3, 2, 5)
    x = _operand(kind, (2, *lengths))
    eager = lax.fft(x, kind, lengths)
    np.testing.assert_allclose(corejax.jit(lambda x: lax.fft(x, kind, lengths))(x), eager, rtol=1e-12, atol=1e-12)
    numpy = getattr(np.fft, kind.lower() + "n")
    np.testing.assert_allclose(eager, numpy(x, lengths, range(1, 6)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_transpose_follows_the_convention_of_jax(kind):
    """A complex derivative has no other definition than a convention."""
    x = _operand(kind, (3, 6), np.float32)

    def loss(fft, x):
        y = fft(x, kind, (3, 6))
        return (y.real * 3 + y.imag * 2).sum() if kind != "IRFFT" else (y**2).sum()

    got = corejax.grad(lambda x: loss(lax.fft, x))(x)
    want = jax.grad(lambda x: loss(jax.lax.fft, x))(x)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def test_compositions():
    x = _operand("RFFT", (4, 6), np.float32)

    def energy(jnp_, row):
        return jnp_.sum(jnp_.abs(jnp_.fft.rfft(row * jnp_.arange(6.0))) ** 2)

    def step(carry, row):
        return carry + jnp.fft.irfft(jnp.fft.rfft(row)), energy(jnp, row)

    got = corejax.jit(corejax.vmap(corejax.grad(lambda row: energy(jnp, row))))(x)
    want = jax.vmap(jax.grad(lambda row: energy(jax.numpy, row)))(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    carry, energies = corejax.jit(lambda x: lax.scan(step, jnp.zeros(6), x))(x)
    np.testing.assert_allclose(carry, x.sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(energies, [energy(np, row) for row in x], rtol=1e-5)
    hessian = corejax.hessian(lambda row: energy(jnp, row))(x[0])
    np.testing.assert_allclose(hessian, jax.hessian(lambda row: energy(jax.numpy, row))(x[0]), rtol=1e-5, atol=1e-3)


def test_dtypes():
    for dtype, real, wide in (
        (np.float32, "float32", "complex64"),
        (np.float64, "float64", "complex128"),
        (np.int32, "float32", "complex64"),
        (np.bool_, "float32", "complex64"),
        (np.float16, "float32", "complex64"),
        (jnp.bfloat16, "float32", "complex64"),
    ):
        x = jnp.ones(4, dtype)
        assert lax.fft(x, "FFT", (4,)).dtype == lax.fft(x, "RFFT", (4,)).dtype == wide
        assert lax.fft(x, lax.FftType.IRFFT, (6,)).dtype == real


def test_empty_batches_and_no_lengths():
    assert lax.fft(jnp.zeros((0, 4)), "RFFT", (4,)).shape == (0, 3)
    assert corejax.jit(lambda x: lax.fft(x, "RFFT", (4,)))(jnp.zeros((0, 4))).shape == (0, 3)
    assert lax.fft(jnp.zeros(3), "FFT", ()).dtype == "complex64"


def test_the_program_is_text_that_parses():
    program = corejax.make_jaxpr(lambda x: lax.fft(x, "IRFFT", (2, 4)))(jnp.zeros((2, 3), "complex64"))
    assert corejax.ir.same_jaxpr(corejax.ir.parse_jaxpr(str(program)), program)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: lax.fft(x, "DCT", (4,)), ValueError, "fft: fft_type is one of FFT, IFFT, RFFT, IRFFT, got 'DCT'"),
        (lambda x: lax.fft(x, 1, (4,)), TypeError, "fft_type is a corejax.lax.FftType or its name, got 1"),
        (lambda x: lax.fft(x, "FFT", (3,)), ValueError, r"with fft_lengths \(3,\) is of last axes \(3,\), got c"),
        (lambda x: lax.fft(x, "FFT", (0,)), ValueError, r"fft_lengths is 1 or more, got \(0,\)"),
        (lambda x: lax.fft(x, "FFT", (2, 2, 4)), ValueError, "over 3 axes"),
        (lambda x: lax.fft(x, "FFT", 4), TypeError, "fft_lengths is a sequence of integers, got 4"),
        (lambda x: lax.fft(x * 1j, "RFFT", (4,)), ValueError, "RFFT takes real numbers, got c"),
        (lambda x: lax.fft_p.bind(x, fft_type=lax.FftType.FFT, fft_lengths=(4,)), TypeError, "FFT takes complex64"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.ones((2, 4)))
