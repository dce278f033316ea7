"""Check a primitive over several devices: with pmap, with shard_map, and compiled for sharded arguments.

The check `shared` is about the manual axes (`vma`) of the types that abstract eval returns in `shard_map`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import ClosedJaxpr, Jaxpr, vmap_rules, xla_translations
from corejax.extend.programs import subjaxprs
from corejax_testing.arrays import Array, compare, direction
from corejax_testing.calls import Call, host
from corejax_testing.checks.batching import batch
from corejax_testing.checks.compiled import has_backend
from corejax_testing.checks.derivatives import needs_jvp
from corejax_testing.checks.registry import at_fault, check
from corejax_testing.outcomes import CheckFailure, NotApplicable

_AXIS = "devices"
_VMA_HINT = (
    "do its results vary along the manual axes that its operands vary along (aval.vma)? They do if abstract eval takes "
    "their types from its programs, or derives them from its operands' types by aval.update"
)
_MOST_SHARED = 2  # the number of operands that are tried


@check("shared", "abstract_eval", limit=2, quick=1)
def check_shared(call: Call, rng: np.random.Generator) -> None:
    """Check that in shard_map the derivative by a replicated operand is the sum of all devices' derivatives."""
    if call.primitive.tags.isdisjoint(("higher_order", "collective")):
        raise NotApplicable("the kernel infers along which axes its results vary")
    if importlib.util.find_spec("corejax_parallel") is None:
        raise NotApplicable("corejax-parallel is not installed")
    if call.example.within is not None:
        raise NotApplicable("its example applies it inside another function (`within`)")
    needs_jvp(call)
    fun, xs, _ = call.moving()
    try:
        zeros = [np.zeros_like(y) for y in host(fun(*xs))]
        corejax.make_jaxpr(lambda *a: corejax.vjp(lambda *b: fun(*b), *a)[1](zeros))(*xs)
    except Exception:
        raise NotApplicable("it has no reverse-mode derivative") from None
    for k in range(min(len(xs), _MOST_SHARED)):
        _check_operand(call, rng, k)


def _check_operand(call: Call, rng: np.random.Generator, k: int) -> None:
    fun, xs, _ = call.moving()
    kept = [i for i in range(len(call.values)) if i not in call.inexact or i == call.inexact[k]]
    elements = [xs, call.again(rng, kept).moving()[1]]
    cts = [[direction(rng, y) for y in host(fun(*x))] for x in elements]

    def slope(x: Sequence[Any], ct: Sequence[Any]) -> Any:
        return corejax.vjp(lambda *a: fun(*a), *x)[1](list(ct))[k]

    def body(shared: Any, blocks: Sequence[Any], ct: Sequence[Any]) -> Any:
        own = [y[0] for y in blocks]
        return slope([*own[:k], shared, *own[k:]], [c[0] for c in ct])

    each = [np.asarray(slope(x, ct)) for x, ct in zip(elements, cts, strict=True)]
    blocks = [np.stack(pair) for i, pair in enumerate(zip(*elements, strict=True)) if i != k]
    spec = corejax.P(_AXIS)
    mapped = corejax.shard_map(
        body,
        mesh=corejax.sharding.AbstractMesh((2,), (_AXIS,)),
        in_specs=(corejax.P(), spec, spec),
        out_specs=corejax.P(),
    )
    with corejax.config.override(disable_jit=True):
        got = np.asarray(mapped(xs[k], blocks, [np.stack(pair) for pair in zip(*cts, strict=True)]))
    what = f"the derivative by operand {call.inexact[k]}, which two devices share,"
    try:
        compare(got, each[0] + each[1], what, "abstract_eval", scale=8 * call.example.tolerance)
    except CheckFailure as failure:
        raise CheckFailure(str(failure), "abstract_eval", _VMA_HINT) from None


_MOST = 8  # the largest number of devices that are used
_MOST_PLACES = 4  # the number of ways to split operands that are tried
_HINT = {
    "vmap": "each device evaluates its part of the batch with the primitive that the vmap rule binds, with the same "
    "parameters: is its leading axis a batch, also of operands with fewer dimensions that abstract_eval accepts?",
    "xla_translation": "are the leading axes given by batch_dims= of its custom_call really a batch of the kernel?",
}


def _needs_devices(call: Call) -> None:
    if not has_backend():
        raise NotApplicable("corejax-xla-backend is not installed")
    if importlib.util.find_spec("corejax_parallel") is None or not hasattr(corejax, "make_mesh"):
        raise NotApplicable("corejax-parallel is not installed")
    if not call.values or any(x.dtype.names is not None for x in call.values):
        raise NotApplicable("no operands of numbers that could be sharded")
    program = call.closed()
    if program.jaxpr.effects:
        raise NotApplicable("its effects happen once, and not on each device")
    if _names_devices(program):
        raise NotApplicable("it has a mesh or sharding of its own")
    xla_translations.lookup(call.primitive, corejax.default_backend())


def _names_devices(program: ClosedJaxpr | Jaxpr) -> bool:
    """Return whether a parameter in a program is a mesh or a sharding."""
    eqns = getattr(program, "jaxpr", program).eqns
    every = [value for eqn in eqns for value in eqn.params.values()]
    inner = [closed for eqn in eqns for closed in subjaxprs(eqn.params)]
    return any(hasattr(value, "device_tuple") for value in every) or any(map(_names_devices, inner))


def devices_note() -> str:
    """Return a note for the report that says how many devices the checks used."""
    if not has_backend():
        return ""
    count = min(corejax.device_count(), _MOST)
    return (
        "on one device: corejax verify --devices 8 splits the CPU into eight" if count == 1 else f"on {count} devices"
    )


def _mesh(count: int) -> Any:
    return corejax.make_mesh((count,), (_AXIS,), devices=corejax.devices()[:count])


def _put(x: Array, mesh: Any, dim: int | None) -> Any:
    spec = corejax.P() if dim is None else corejax.P(*[None] * dim, _AXIS)
    return corejax.device_put(x, corejax.NamedSharding(mesh, spec))


def _places(call: Call, most: int) -> Iterator[tuple[int, tuple[int | None, ...]]]:
    """Yield numbers of devices, and the dimension of each operand to split over them.

    Splits all operands that have a dimension of the same size, and then one operand alone.
    """
    found: dict[Any, None] = {}
    for i, x in enumerate(call.values):
        for dim, size in enumerate(x.shape):
            count = max((n for n in range(1, most + 1) if size and size % n == 0), default=0)
            if count and (count > 1 or most == 1):
                alike = [dim if y.ndim > dim and y.shape[dim] == size else None for y in call.values]
                alone = [dim if k == i else None for k in range(len(call.values))]
                found[count, tuple(alike)] = found[count, tuple(alone)] = None
    yield from list(found)[: _MOST_PLACES if most > 1 else 1]


def _rule_of(program: Callable[..., Any], args: Sequence[Any]) -> str:
    """Return the kind of the rule that determined how a program over several devices was split."""
    text = corejax.jit(program).lower(*args).as_text()
    return "vmap" if "corejax.partitioned" in text else "xla_translation"


def _agree(
    program: Callable[..., Any],
    args: Sequence[Any],
    wanted: Sequence[Array],
    what: str,
    scale: float,
    rule: str | None = None,
) -> None:
    """Compare results; if no rule is given, blame the rule that split the operands."""
    with at_fault(rule or "xla_translation"):
        got = host(corejax.jit(program)(*args))
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        try:
            compare(a, b, f"result {i} {what}", rule, scale=scale)
        except CheckFailure as failure:
            found = rule or _rule_of(program, args)
            raise CheckFailure(str(failure), found, _HINT[found]) from None


@check("sharded", "xla_translation", limit=2, quick=1, note=devices_note)
def check_sharded(call: Call, rng: np.random.Generator) -> None:
    """Check that results over several devices, by jit, shard_map and pmap, are those on one device."""
    _needs_devices(call)
    most = min(corejax.device_count(), _MOST)
    scale = 4 * call.example.tolerance
    wanted = host(call(*call.values))
    program = lambda *values: call(*values)  # noqa: E731 - jit gives it this name
    for count, dims in _places(call, most):
        args = [_put(x, _mesh(count), d) for x, d in zip(call.values, dims, strict=True)]
        _agree(program, args, wanted, f"compiled over {count} devices, operands split along {dims},", scale)
    if vmap_rules.find(call.primitive) is not None:
        _check_batches(call, rng, most, scale)


def _check_batches(call: Call, rng: np.random.Generator, most: int, scale: float) -> None:
    """Check a batch that is split over the devices: compiled, in shard_map, and by pmap."""
    axes = (0,) * len(call.values)
    mesh, size = _mesh(most), most if most > 1 else 2
    values, elements = batch(call, axes, rng, size)
    results = [host(call(*each)) for each in elements]
    wanted = [np.stack(each) for each in zip(*results, strict=True)]
    batched = corejax.vmap(call.__call__)
    args = [_put(x, mesh, 0) for x in values]
    _agree(batched, args, wanted, f"of vmap, compiled over {most} devices, the batch split,", scale, "vmap")
    blocks = corejax.shard_map(batched, mesh=mesh, in_specs=corejax.P(_AXIS), out_specs=corejax.P(_AXIS))
    with at_fault("vmap"):
        mapped = host(corejax.jit(lambda *values: blocks(*values))(*values))
        each = host(
            corejax.pmap(call.__call__, axis_name=_AXIS, devices=corejax.devices()[:most])(*[x[:most] for x in values])
        )
    for i, (a, b, right) in enumerate(zip(mapped, each, wanted, strict=True)):
        compare(a, right, f"result {i} of vmap in shard_map over {most} devices", "vmap", scale=scale)
        compare(b, right[:most], f"result {i} of pmap over {most} devices", "xla_translation", scale=scale)
