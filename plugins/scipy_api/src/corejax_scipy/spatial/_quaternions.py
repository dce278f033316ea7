"""Unit quaternions `(x, y, z, w)` along a last axis: products, matrices, axes and angles."""

from __future__ import annotations

import math
from typing import Any

import corejax.numpy as jnp

_SMALL = 1e-3  # the angle below which quotients are computed by series


def length(x: Any) -> Any:
    """Return the Euclidean norm along the last axis, with the derivative 0 at 0."""
    square = jnp.sum(x * x, axis=-1)
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


def normalized(quat: Any) -> Any:
    """Normalise quaternions to length 1."""
    return quat / jnp.sqrt(jnp.sum(quat * quat, axis=-1, keepdims=True))


def conjugate(quat: Any) -> Any:
    """Return the inverse rotation."""
    return jnp.concatenate([-quat[..., :3], quat[..., 3:]], axis=-1)


def canonical(quat: Any) -> Any:
    """Return the canonical one of a rotation's two quaternions: the first nonzero part of w, x, y, z is positive."""
    x, y, z, w = (quat[..., i] for i in range(4))
    sign = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where((sign < 0)[..., None], -quat, quat)


def product(p: Any, q: Any) -> Any:
    """Compose rotations: first `q`, then `p`."""
    p, q = jnp.broadcast_arrays(p, q)
    a, b = p[..., :3], q[..., :3]
    vector = p[..., 3:] * b + q[..., 3:] * a + jnp.cross(a, b)
    scalar = p[..., 3:] * q[..., 3:] - jnp.sum(a * b, axis=-1, keepdims=True)
    return jnp.concatenate([vector, scalar], axis=-1)


def as_matrix(quat: Any) -> Any:
    """Convert quaternions to orthogonal matrices."""
    x, y, z, w = (quat[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: Any) -> Any:
    """Convert matrices to quaternions, by the formula for the largest of the four parts (Shepperd 1978)."""
    trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {
            i: 1 - trace + 2 * m[..., i, i],
            j: m[..., j, i] + m[..., i, j],
            k: m[..., k, i] + m[..., i, k],
            3: m[..., k, j] - m[..., j, k],
        }
        candidates.append(jnp.stack([parts[a] for a in range(4)], axis=-1))
    differences = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace]
    candidates.append(jnp.stack(differences, axis=-1))
    sizes = jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1)
    choice = jnp.argmax(sizes, axis=-1)
    found = candidates[3]
    for i in range(3):
        found = jnp.where((choice == i)[..., None], candidates[i], found)
    return normalized(found)


def from_rotvec(rotvec: Any) -> Any:
    """Convert rotation vectors, which have the angle as length, to quaternions."""
    angle = length(rotvec)[..., None]
    small = angle <= _SMALL
    square = angle * angle
    large = jnp.where(small, 1, angle)
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(large / 2) / large)
    return jnp.concatenate([scale * rotvec, jnp.cos(angle / 2)], axis=-1)


def as_rotvec(quat: Any) -> Any:
    """Convert quaternions to rotation vectors, which have the angle (at most pi) as length."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    angle = 2 * jnp.arctan2(length(quat[..., :3]), quat[..., 3])[..., None]
    small = angle <= _SMALL
    square = angle * angle
    large = jnp.where(small, 1, angle)
    scale = jnp.where(small, 2 + square / 12 + 7 * square * square / 2880, large / jnp.sin(large / 2))
    return scale * quat[..., :3]


def from_euler(axes: list[int], intrinsic: bool, angles: Any) -> Any:
    """Compose rotations by angles about axes."""
    out = None
    for position, axis in enumerate(axes):
        half = angles[..., position] / 2
        parts = [jnp.sin(half) if i == axis else jnp.zeros_like(half) for i in range(3)]
        quat = jnp.stack([*parts, jnp.cos(half)], axis=-1)
        out = quat if out is None else product(out, quat) if intrinsic else product(quat, out)
    return out


def as_euler(quat: Any, axes: list[int], intrinsic: bool) -> Any:
    """Return angles about three axes, directly from quaternions (Bernardes and Viollet 2022)."""
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    x = [quat[..., n] for n in range(4)]
    if symmetric:
        a, b, c, d = x[3], x[i], x[j], x[k] * sign
    else:
        a, b, c, d = x[3] - x[j], x[i] + x[k] * sign, x[j] + x[3], x[k] * sign - x[i]
    middle = 2 * jnp.arctan2(length(jnp.stack([c, d], -1)), length(jnp.stack([a, b], -1)))
    at_zero, at_pi = jnp.abs(middle) <= 1e-7, jnp.abs(middle - math.pi) <= 1e-7
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    degenerate = jnp.where(at_zero, 2 * half_sum, 2 * half_difference * (1 if intrinsic else -1))
    lost = at_zero | at_pi
    # In gimbal lock only the sum or difference of the outer angles is known: one of them takes all of it.
    first = jnp.where(lost, 0 if intrinsic else degenerate, half_sum - half_difference)
    third = jnp.where(lost, degenerate if intrinsic else 0, half_sum + half_difference)
    if not symmetric:
        third = third * sign
        middle = middle - math.pi / 2
    outer = (third, middle, first) if intrinsic else (first, middle, third)
    angles = jnp.stack(outer, axis=-1)
    return (angles + math.pi) % (2 * math.pi) - math.pi
