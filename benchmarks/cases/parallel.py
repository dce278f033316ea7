"""Eight devices: calls, tracing, first calls, compiled steps, transfers, eager operations on arrays over a mesh.

Both libraries have to have eight CPU devices, which is settled when a process starts: `run.py` runs these in one of
their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cases.loops import both, fresh
from cases.registry import CASES, Case, blocking

DEVICES = 8
LEAVES = 100

Side = Callable[[Any], Callable[[], Any]]


def case(name: str, wanted: float | None, short: bool = False) -> Callable[[Side], Side]:
    """Add a case, of one function for both libraries."""

    def add(side: Side) -> Side:
        CASES.append(Case(f"8 devices: {name}", wanted, lambda: both(side), short, devices=DEVICES))
        return side

    return add


def mesh(lib: Any, *sizes: int) -> Any:
    """All devices, with axes "x", "y"."""
    names = ("x", "y")[: len(sizes) or 1]
    return lib.make_mesh(sizes or (DEVICES,), names, axis_types=(lib.sharding.AxisType.Auto,) * len(names))


def over(lib: Any, *spec: Any, sizes: tuple[int, ...] = ()) -> Any:
    """A sharding over all devices."""
    return lib.sharding.NamedSharding(mesh(lib, *sizes), lib.sharding.PartitionSpec(*spec))


def spread(lib: Any, shape: tuple[int, ...] = (8, 4), *spec: Any) -> Any:
    """An array over all devices, by rows unless said otherwise."""
    return lib.device_put(np.ones(shape, np.float32), over(lib, *(spec or ("x",))))


def of(lib: Any, name: str) -> Any:
    """A module of the library."""
    return importlib.import_module(f"{lib.__name__}.{name}")


# -- dispatch --------------------------------------------------------------------------------------------------------


def _add(xs: Any) -> Any:
    return [x + 1 for x in xs]


def by_sharded_arguments(lib: Any, **options: Any) -> Any:
    """`jit`, which finds out by its arguments."""
    return lib.jit(_add, **options)


def by_in_shardings(lib: Any, **options: Any) -> Any:
    """`jit` that is told."""
    return lib.jit(_add, in_shardings=(over(lib, "x"),), out_shardings=over(lib, "x"), **options)


def by_shard_map(lib: Any, **options: Any) -> Any:
    """`shard_map`, compiled."""
    spec = lib.sharding.PartitionSpec("x")
    return lib.jit(lib.shard_map(_add, mesh=mesh(lib), in_specs=(spec,), out_specs=spec), **options)


def by_pmap(lib: Any, **options: Any) -> Any:
    """`pmap`."""
    return lib.pmap(_add, **options)


WAYS = {
    "jit of sharded arrays": by_sharded_arguments,
    "jit with in_shardings": by_in_shardings,
    "jit of shard_map": by_shard_map,
    "pmap": by_pmap,
}


def _repeated(way: Callable[..., Any], count: int) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        f = way(lib)
        xs = f([spread(lib)] * count)  # as results of the function itself, which a loop hands on
        return lambda: f(xs)

    return side


def _donated(way: Callable[..., Any], count: int) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        f = way(lib, donate_argnums=0)
        state = [f([spread(lib) + 0 for _ in range(count)])]

        def call() -> None:
            state[0] = f(state[0])

        return call

    return side


for _name, _way in WAYS.items():
    for _count in (2, LEAVES):
        case(f"call of {_name}, {_count} arrays", 1.1, short=_count == 2)(_repeated(_way, _count))
        case(f"call of {_name}, {_count} donated arrays", 1.1, short=_count == 2)(_donated(_way, _count))


# -- tracing and first calls -----------------------------------------------------------------------------------------


def _ring(lib: Any, factor: float) -> Callable[..., Any]:
    lax = of(lib, "lax")

    def f(a: Any, w: Any) -> Any:
        h = lib.numpy.tanh(a @ w) * factor
        h = h + lax.ppermute(h, "x", [(i, (i + 1) % DEVICES) for i in range(DEVICES)])
        g = lax.all_gather(h, "x", axis=0, tiled=True)
        return lax.psum(lib.numpy.sum(g @ g.T), "x") + lax.psum(lib.numpy.sum(h * lax.axis_index("x")), "x")

    return f


def _in_shard_map(lib: Any) -> Callable[..., Any]:
    p = lib.sharding.PartitionSpec
    return lib.shard_map(_ring(lib, fresh()), mesh=mesh(lib), in_specs=(p("x"), p()), out_specs=p())  # type: ignore[no-any-return]


def _in_pmap(lib: Any) -> Callable[..., Any]:
    f = _ring(lib, fresh())
    return lib.pmap(lambda a, w: f(a[None], w), axis_name="x", in_axes=(0, None))  # type: ignore[no-any-return]


def _sharded(lib: Any) -> Callable[..., Any]:
    factor = fresh()
    return lib.jit(lambda a, w: lib.numpy.sum(lib.numpy.tanh(a @ w) * factor))  # type: ignore[no-any-return]


def _operands(lib: Any) -> tuple[Any, Any]:
    return spread(lib, (DEVICES, 8)), spread(lib, (8, 8), None)


MAPPED = {"shard_map": _in_shard_map, "pmap": _in_pmap, "jit of sharded arrays": _sharded}


def _summed(lib: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: lib.numpy.sum(f(*args))


def _traced(make: Callable[..., Any], grad: bool) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        args = np.ones((DEVICES, 8), np.float32), np.ones((8, 8), np.float32)

        def call() -> Any:
            f = _summed(lib, make(lib))
            return lib.make_jaxpr(lib.grad(f) if grad else f)(*args)

        return call

    return side


def _first(make: Callable[..., Any], grad: bool) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        args = _operands(lib)

        def call() -> Any:
            f = _summed(lib, make(lib))
            return lib.jit(lib.grad(f) if grad else f)(*args)

        return blocking(lib, call)

    return side


for _name, _make in MAPPED.items():
    for _what, _grad in ((_name, False), (f"grad of {_name}", True)):
        case(f"tracing {_what}", 0.3)(_traced(_make, _grad))
        case(f"first call of {_what}", 0.9)(_first(_make, _grad))


@case("tracing vmap of psum", 0.3)
def traced_vmap(lib: Any) -> Callable[[], Any]:
    """A collective over an axis of one device."""
    x = np.ones((8, 4), np.float32)

    def call() -> Any:
        factor = fresh()
        return lib.make_jaxpr(lib.vmap(lambda v: of(lib, "lax").psum(v * factor, "i"), axis_name="i"))(x)

    return call


@case("eager vmap of psum", 0.4)
def eager_vmap(lib: Any) -> Callable[[], Any]:
    """The same, computed at once."""
    x = lib.numpy.ones((8, 4))
    f = lib.vmap(lambda v: of(lib, "lax").psum(v * 2, "i"), axis_name="i")
    return lambda: f(x)


def _product(lib: Any) -> Callable[..., Any]:
    p = lib.sharding.PartitionSpec

    def f(a: Any, w: Any) -> Any:
        return of(lib, "lax").psum(lib.numpy.sum(lib.numpy.tanh(a @ w)), "x")

    return lib.shard_map(f, mesh=mesh(lib), in_specs=(p("x"), p()), out_specs=p())  # type: ignore[no-any-return]


@case("eager call of shard_map", 0.1)
def eager_shard_map(lib: Any) -> Callable[[], Any]:
    """One that is not inside of jit, again and again."""
    args, f = _operands(lib), _product(lib)
    return blocking(lib, lambda: f(*args))


@case("eager grad of shard_map", 0.1)
def eager_grad(lib: Any) -> Callable[[], Any]:
    """The same, differentiated."""
    args, f = _operands(lib), lib.grad(_product(lib))
    return blocking(lib, lambda: f(*args))


# -- compiled --------------------------------------------------------------------------------------------------------


WIDTH, BATCH = 256, 512


def _step(lib: Any, batch: Any, params: tuple[Any, ...]) -> Callable[[], Any]:
    """A training step of a perceptron: weights of two layers, laid out as `params` says."""
    rng = np.random.default_rng(0)
    shapes = (WIDTH, 4 * WIDTH), (4 * WIDTH,), (4 * WIDTH, WIDTH)
    values = [rng.standard_normal(shape).astype(np.float32) * 0.05 for shape in shapes]
    w = lib.device_put(values, list(params))
    x = lib.device_put(rng.standard_normal((BATCH, WIDTH)).astype(np.float32), batch)

    def loss(w: Any, x: Any) -> Any:
        return lib.numpy.mean((lib.numpy.tanh(x @ w[0] + w[1]) @ w[2] - x) ** 2)

    def update(w: Any, x: Any) -> Any:
        return [p - 0.1 * g for p, g in zip(w, lib.grad(loss)(w, x), strict=True)]

    step = lib.jit(update, out_shardings=list(params))
    return blocking(lib, lambda: step(w, x))


@case("compiled step, data parallel", 1.02)
def data_parallel(lib: Any) -> Callable[[], Any]:
    """The batch spread, the weights everywhere."""
    whole = over(lib)
    return _step(lib, over(lib, "x"), (whole, whole, whole))


@case("compiled step, tensor parallel", 1.02)
def tensor_parallel(lib: Any) -> Callable[[], Any]:
    """The batch over two of the devices, the hidden units over four."""

    def at(*spec: Any) -> Any:
        return over(lib, *spec, sizes=(2, 4))

    return _step(lib, at("x"), (at(None, "y"), at("y"), at("y")))


# -- transfers -------------------------------------------------------------------------------------------------------

LARGE = (1024, 1024)


def unaligned(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Ones in memory as NumPy mostly has it; of what happens to begin at a multiple of 64 jax makes no copy."""
    size = int(np.prod(shape))
    memory = np.ones(size + 32, np.float32)
    start = (16 - memory.ctypes.data) % 64 // 4
    return memory[start : start + size].reshape(shape)


def _put(shape: tuple[int, ...], *spec: Any) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        value, to = unaligned(shape), over(lib, *spec)
        return blocking(lib, lambda: lib.device_put(value, to))

    return side


def _moved(shape: tuple[int, ...], start: Any, end: tuple[Any, ...]) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        x, to = spread(lib, shape, *start), over(lib, *end)
        return blocking(lib, lambda: lib.device_put(x, to))

    return side


def _turned(shape: tuple[int, ...]) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        grid = np.array(lib.devices()[:DEVICES])[::-1]
        to = lib.sharding.NamedSharding(lib.sharding.Mesh(grid, ("x",)), lib.sharding.PartitionSpec("x"))
        x = spread(lib, shape)
        return blocking(lib, lambda: lib.device_put(x, to))

    return side


def _fetched(shape: tuple[int, ...], *spec: Any) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        x = spread(lib, shape, *spec)
        f = lib.jit(lambda x: x + 1)
        return lambda: np.asarray(f(x))  # the value of an array is kept once it was read

    return side


for _shape, _size in (((8, 4), "small"), (LARGE, "large")):
    _short = _size == "small"
    case(f"device_put of a {_size} NumPy array", 1.1, _short)(_put(_shape, "x"))
    case(f"device_put of a {_size} NumPy array everywhere", 1.1, _short)(_put(_shape))
    case(f"device_put of a {_size} array from rows to columns", 1.1, _short)(
        _moved((_shape[0], max(8, _shape[1])), ("x",), (None, "x"))
    )
    case(f"device_put of a {_size} array everywhere", 1.1, _short)(_moved(_shape, ("x",), ()))
    case(f"device_put of a {_size} array, devices in another order", 1.1, _short)(_turned(_shape))
    case(f"fetching a {_size} array", 1.1, _short)(_fetched(_shape, "x"))


@case("make_array_from_callback", 1.1, short=True)
def from_callback(lib: Any) -> Callable[[], Any]:
    """Parts that are there."""
    value, to = np.ones((64, 64), np.float32), over(lib, "x")
    return blocking(lib, lambda: lib.make_array_from_callback((64, 64), to, lambda index: value[index]))


# -- eager -----------------------------------------------------------------------------------------------------------


EAGER: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda jnp, x: jnp.add(x, x),
    "sin": lambda jnp, x: jnp.sin(x),
    "sum": lambda jnp, x: jnp.sum(x),
    "matmul": lambda jnp, x: jnp.matmul(x, x.T),
    "x[0]": lambda jnp, x: x[0],
    "x * 2.0": lambda jnp, x: x * 2.0,
}


def _eager(f: Callable[[Any, Any], Any]) -> Side:
    def side(lib: Any) -> Callable[[], Any]:
        x = spread(lib)
        return blocking(lib, lambda: f(lib.numpy, x))  # jax's process ends where many sums are not waited for

    return side


for _name, _f in EAGER.items():
    case(f"eager {_name}", 1.1, short=True)(_eager(_f))
