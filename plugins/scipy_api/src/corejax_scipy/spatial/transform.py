"""`corejax.scipy.spatial.transform`: rotations in space, and paths between them.

Rotations are unit quaternions `(x, y, z, w)` along a last axis; both classes are pytrees. Source:
`scipy.spatial.transform`.
"""

from __future__ import annotations

import itertools as _itertools
import re as _re
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

import corejax.numpy as _jnp
from corejax_scipy._arguments import increases as _increases
from corejax_scipy._arguments import reals as _reals
from corejax_scipy._arguments import static_int as _static_int
from corejax_scipy.spatial import _quaternions

__all__ = ["Rotation", "Slerp"]


def _array(name: str, x: _Any, length: int, what: str) -> _Any:
    """Convert an argument to real numbers, and require the length of its last axis."""
    found = _jnp.asarray(x) if isinstance(x, list | tuple) else x
    (found,) = _reals(name, found)
    if not found.ndim or found.shape[-1] != length:
        raise ValueError(f"{name}: the last axis of {what} must have {length} elements, got {found.aval.str_short()}")
    return found


def _axes(name: str, seq: _Any, least: int) -> tuple[list[int], bool]:
    """Return the numbers of the axes in a sequence such as "xyz", and whether it is intrinsic (upper case)."""
    if not isinstance(seq, str) or not _re.fullmatch(rf"[xyz]{{{least},3}}|[XYZ]{{{least},3}}", seq):
        count = "3" if least == 3 else "1 to 3"
        raise ValueError(
            f"{name}: seq must have {count} letters of 'xyz', or of 'XYZ' for axes that rotate with the body, got "
            f"{seq!r}"
        )
    if any(a == b for a, b in _itertools.pairwise(seq)):
        raise ValueError(f"{name}: consecutive axes in seq must differ, got {seq!r}")
    return ["xyz".index(letter) for letter in seq.lower()], seq.isupper()


class Rotation(_NamedTuple):
    """A rotation, or several along the first axis of `quat`.

    Attributes:
        quat: unit quaternions `(x, y, z, w)`.
    """

    quat: _Any

    @classmethod
    def from_quat(cls, quat: _Any) -> Rotation:
        """Create rotations from quaternions `(x, y, z, w)`, which are normalised."""
        return cls(_quaternions.normalized(_array("Rotation.from_quat", quat, 4, "quat")))

    @classmethod
    def from_matrix(cls, matrix: _Any) -> Rotation:
        """Create rotations from orthogonal matrices in the last two axes."""
        found = _array("Rotation.from_matrix", matrix, 3, "matrix")
        if found.ndim < 2 or found.shape[-2] != 3:
            raise ValueError(f"Rotation.from_matrix: matrix must have shape (..., 3, 3), got {found.aval.str_short()}")
        return cls(_quaternions.from_matrix(found))

    @classmethod
    def from_rotvec(cls, rotvec: _Any, degrees: bool = False) -> Rotation:
        """Create rotations from vectors along the axis with the angle as length."""
        found = _array("Rotation.from_rotvec", rotvec, 3, "rotvec")
        return cls(_quaternions.from_rotvec(_jnp.deg2rad(found) if degrees else found))

    @classmethod
    def from_mrp(cls, mrp: _Any) -> Rotation:
        """Create rotations from modified Rodrigues parameters: vectors along the axis of length `tan(angle / 4)`."""
        found = _array("Rotation.from_mrp", mrp, 3, "mrp")
        square = _jnp.sum(found * found, axis=-1, keepdims=True)
        return cls(_jnp.concatenate([2 * found, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: _Any, degrees: bool = False) -> Rotation:
        """Create rotations from Euler angles.

        Args:
            seq: the axes: letters of "xyz" for fixed axes, of "XYZ" for axes that rotate with the body.
            angles: an angle for each axis along the last axis; for a single axis a number or a vector.
            degrees: whether angles are in degrees.

        Raises:
            ValueError: `seq` is invalid, or the number of angles does not match.
        """
        axes, intrinsic = _axes("Rotation.from_euler", seq, 1)
        (found,) = _reals("Rotation.from_euler", _jnp.asarray(angles))
        if len(axes) == 1 and (not found.ndim or found.shape[-1] != 1):
            found = found[..., None]
        if not found.ndim or found.shape[-1] != len(axes):
            raise ValueError(
                f"Rotation.from_euler: angles must have {len(axes)} along its last axis for seq {seq!r}, got "
                f"{found.aval.str_short()}"
            )
        return cls(_quaternions.from_euler(axes, intrinsic, _jnp.deg2rad(found) if degrees else found))

    @classmethod
    def identity(cls, num: int | None = None, dtype: _Any = float) -> Rotation:
        """Return the identity rotation, or `num` of them.

        Raises:
            TypeError: `num` is not an integer.
            ValueError: `num` is negative.
        """
        if num is not None:
            _static_int("Rotation.identity", num, "num", 0)
        quat = _jnp.asarray([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else _jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: _Any, num: int | None = None) -> Rotation:
        """Draw a uniformly distributed rotation, or `num` of them."""
        from corejax import random

        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: _Sequence[Rotation]) -> Rotation:
        """Concatenate rotations along the first axis."""
        return cls(_jnp.concatenate([_jnp.atleast_2d(r.quat) for r in rotations]))

    @property
    def single(self) -> bool:
        """Whether this is a single rotation, without an axis of rotations."""
        return bool(self.quat.ndim == 1)

    def __getitem__(self, indexer: _Any) -> Rotation:
        if self.single:
            raise TypeError("Rotation: a single rotation has no elements")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single rotation has no length")
        length: int = self.quat.shape[0]
        return length

    def __mul__(self, other: _Any) -> Rotation:
        """Compose rotations: first `other`, then this one."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_quaternions.normalized(_quaternions.product(self.quat, other.quat)))

    def apply(self, vectors: _Any, inverse: bool = False) -> _Any:
        """Rotate vectors along the last axis, or rotate them back with `inverse`."""
        found = _array("Rotation.apply", vectors, 3, "vectors")
        matrix = self.as_matrix()
        if inverse:
            matrix = _jnp.swapaxes(matrix, -1, -2)
        return _jnp.sum(matrix * found[..., None, :], axis=-1)

    def inv(self) -> Rotation:
        """Return the inverse rotation."""
        return Rotation(_quaternions.conjugate(self.quat))

    def magnitude(self) -> _Any:
        """Return the angle, from 0 to pi."""
        return 2 * _jnp.arctan2(_quaternions.length(self.quat[..., :3]), _jnp.abs(self.quat[..., 3]))

    def mean(self, weights: _Any = None) -> Rotation:
        """Return the mean rotation in the chordal distance (Markley et al. 2007).

        Raises:
            ValueError: `weights` does not have one number for each rotation.
        """
        w = _jnp.ones(len(self), self.quat.dtype) if weights is None else _jnp.asarray(weights, dtype=self.quat.dtype)
        if w.shape != (len(self),):
            raise ValueError(
                f"Rotation.mean: weights must have {len(self)} numbers, one for each rotation, got shape {w.shape}"
            )
        moments = _jnp.matmul(self.quat.T * w, self.quat, precision="highest")
        return Rotation(_jnp.linalg.eigh(moments)[1][:, -1])

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> _Any:
        """Return quaternions `(x, y, z, w)`, or `(w, x, y, z)`.

        In canonical quaternions, the first nonzero part of w, x, y, z is positive.
        """
        quat = _quaternions.canonical(self.quat) if canonical else self.quat
        return _jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> _Any:
        """Return orthogonal matrices."""
        return _quaternions.as_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> _Any:
        """Return vectors along the axis with the angle as length, up to pi."""
        out = _quaternions.as_rotvec(self.quat)
        return _jnp.rad2deg(out) if degrees else out

    def as_mrp(self) -> _Any:
        """Return modified Rodrigues parameters."""
        sign = _jnp.where(self.quat[..., 3:] < 0, -1, 1)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> _Any:
        """Return Euler angles, see `from_euler`; in gimbal lock the first or the third angle is 0."""
        axes, intrinsic = _axes("Rotation.as_euler", seq, 3)
        out = _quaternions.as_euler(self.quat, axes, intrinsic)
        return _jnp.rad2deg(out) if degrees else out


class Slerp(_NamedTuple):
    """A path through rotations at given times, along great arcs: `Slerp.init(times, rotations)`, then call it.

    Attributes:
        times: the increasing times.
        timedelta: the differences of the times.
        rotations: the rotations at all times but the last.
        rotvecs: the rotation vectors from each rotation to the next.
    """

    times: _Any
    timedelta: _Any
    rotations: Rotation
    rotvecs: _Any

    @classmethod
    def init(cls, times: _Any, rotations: Rotation) -> Slerp:
        """Create the path through `rotations` at `times`.

        Raises:
            TypeError: `rotations` is not a `Rotation`.
            ValueError: there are fewer than two rotations, the number of times differs, or known times do not increase.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp.init: rotations must be a Rotation, got {type(rotations).__name__}")
        if rotations.single or len(rotations) < 2:
            raise ValueError(
                f"Slerp.init: rotations must be two or more, got quaternions of shape {rotations.quat.shape}"
            )
        times = _jnp.asarray(times, dtype=rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(f"Slerp.init: times must be a vector of {len(rotations)} numbers, got shape {times.shape}")
        if not _increases(times, strictly=True):
            raise ValueError(f"Slerp.init: times must increase strictly, got {times}")
        before, after = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, _jnp.diff(times), before, (before.inv() * after).as_rotvec())

    def __call__(self, times: _Any) -> Rotation:
        """Return the rotation at a time, or several at a vector of times."""
        t = _jnp.asarray(times, dtype=self.times.dtype)
        if t.ndim > 1:
            raise ValueError(f"Slerp: times must be a number or a vector, got {t.aval.str_short()}")
        index = _jnp.clip(_jnp.searchsorted(self.times, t) - 1, 0, self.timedelta.shape[0] - 1)
        part = (t - self.times[index]) / self.timedelta[index]
        return Rotation(self.rotations.quat[index]) * Rotation.from_rotvec(self.rotvecs[index] * part[..., None])
