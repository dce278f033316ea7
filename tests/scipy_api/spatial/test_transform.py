"""`corejax.scipy.spatial.transform` beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import transform as theirs

import corejax
import corejax.numpy as jnp
from corejax.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(17)
QUATS = RNG.standard_normal((9, 4))
VECTORS = RNG.standard_normal((9, 3))


def _close(got, want, tolerance=1e-10):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("single", [False, True])
def test_forms(single):
    q, v = (QUATS[0], VECTORS[0]) if single else (QUATS, VECTORS)
    ours, reference = Rotation.from_quat(q), theirs.Rotation.from_quat(q)
    for form in ("as_quat", "as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        _close(getattr(ours, form)(), getattr(reference, form)())
    _close(ours.as_rotvec(degrees=True), reference.as_rotvec(degrees=True))
    _close(ours.as_quat(canonical=True), reference.as_quat(canonical=True))
    _close(ours.as_quat(scalar_first=True), reference.as_quat(scalar_first=True))
    _close(ours.apply(v), reference.apply(v))
    _close(ours.apply(v, inverse=True), reference.apply(v, inverse=True))
    _close(
        (ours.inv() * Rotation.from_rotvec(v)).as_matrix(),
        (reference.inv() * theirs.Rotation.from_rotvec(v)).as_matrix(),
    )
    for back in ("matrix", "rotvec", "mrp", "quat"):
        again = getattr(Rotation, f"from_{back}")(getattr(ours, f"as_{back}")())
        _close(again.as_matrix(), reference.as_matrix())
    assert ours.single == single


@pytest.mark.parametrize("seq", ["xyz", "zyx", "XYZ", "ZXZ", "yxy", "YZX"])
def test_euler(seq):
    angles = RNG.uniform(-1.4, 1.4, (9, 3))
    ours, reference = Rotation.from_euler(seq, angles), theirs.Rotation.from_euler(seq, angles)
    _close(ours.as_matrix(), reference.as_matrix())
    for other in ("xyz", "ZYX", "XYX", "zxz"):
        _close(ours.as_euler(other, degrees=True), reference.as_euler(other, degrees=True), 1e-8)
    _close(
        Rotation.from_euler("z", 90, degrees=True).as_quat(),
        theirs.Rotation.from_euler("z", 90, degrees=True).as_quat(),
        1e-6,
    )


def test_several():
    ours, reference = Rotation.from_quat(QUATS), theirs.Rotation.from_quat(QUATS)
    assert len(ours) == 9 and len(Rotation.concatenate([ours, ours[:2]])) == 11
    _close(ours[2:4].as_matrix(), reference[2:4].as_matrix())
    _close(Rotation.identity(2, dtype="float64").as_matrix(), np.stack([np.eye(3)] * 2))
    times = np.linspace(0, 4, 9)
    wanted = np.array([0.0, 0.3, 2.2, 4.0])
    _close(Slerp.init(times, ours)(wanted).as_matrix(), theirs.Slerp(times, reference)(wanted).as_matrix())
    _close(Slerp.init(times, ours)(1.7).as_matrix(), theirs.Slerp(times, reference)(1.7).as_matrix())


def test_derivatives_are_finite_at_nothing_and_compile():
    f = corejax.jit(corejax.jacfwd(lambda v: Rotation.from_rotvec(v).as_matrix()))
    slope = f(np.zeros(3))
    for i in range(3):
        _close(
            slope[..., i], theirs.Rotation.from_rotvec(np.eye(3)[i] * 1e-6).as_matrix() * 1e6 - np.eye(3) * 1e6, 1e-5
        )
    assert np.isfinite(corejax.grad(lambda v: Rotation.from_rotvec(v).as_rotvec().sum())(np.zeros(3))).all()
    turned = corejax.vmap(lambda r, v: r.apply(v))(Rotation.from_quat(QUATS), VECTORS)
    _close(turned, theirs.Rotation.from_quat(QUATS).apply(VECTORS))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: Rotation.from_quat(jnp.ones(3)),
            ValueError,
            "Rotation.from_quat: the last axis of quat must have 4 elements",
        ),
        (lambda: Rotation.from_matrix(jnp.ones((2, 3))), ValueError, r"matrix must have shape \(..., 3, 3\)"),
        (lambda: Rotation.from_euler("xx", jnp.ones(2)), ValueError, "consecutive axes in seq must differ, got 'xx'"),
        (lambda: Rotation.from_euler("xY", jnp.ones(2)), ValueError, "seq must have 1 to 3 letters"),
        (lambda: Rotation.from_euler("xyz", jnp.ones(2)), ValueError, "angles must have 3 along its last axis"),
        (lambda: Rotation.identity().as_euler("xy"), ValueError, "seq must have 3 letters"),
        (lambda: len(Rotation.identity()), TypeError, "a single rotation has no length"),
        (lambda: Rotation.from_quat(QUATS).mean(np.ones(2)), ValueError, "weights must have 9 numbers"),
        (lambda: Slerp.init(jnp.ones(3), QUATS), TypeError, "rotations must be a Rotation, got ndarray"),
        (lambda: Slerp.init(jnp.ones(3), Rotation.from_quat(QUATS)), ValueError, "times must be a vector of 9 numbers"),
        (lambda: Slerp.init(-jnp.arange(9.0), Rotation.from_quat(QUATS)), ValueError, "times must increase strictly"),
        (lambda: Rotation.identity(-1), ValueError, "Rotation.identity: num must be 0 or more, got -1"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
