"""Backends as a hook: which one `jit` asks, what it asks of it, and what happens where one fails or lacks something."""

from __future__ import annotations

import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import corejax
from corejax import jit, lax
from corejax.cli import main
from corejax.errors import BackendError, PluginError
from corejax.extend import Backend, Capabilities, ClosedJaxpr, ShapedArray, backends, eval_jaxpr_on_host, hookimpl
from corejax.extend.messages import observe
from corejax.extend.transforms import trace_stack

X = np.float32([1, 2, 3])


class ToyDevice:
    def __init__(self, id: int) -> None:
        self.id, self.platform, self.device_kind = id, "abacus", "beads"

    def memory_stats(self) -> None: ...


class ToyBuffer:
    def __init__(self, value: Any, device: ToyDevice) -> None:
        self.value, self.device = value, device


class ToyExecutable:
    calls_python = True

    def __init__(self, backend: Toy, closed: ClosedJaxpr) -> None:
        self.backend, self.closed = backend, closed

    def run(self, buffers: Sequence[ToyBuffer]) -> list[ToyBuffer]:
        with backends.running(self.backend):
            outs = eval_jaxpr_on_host(self.closed, [b.value for b in buffers])
        return [ToyBuffer(value, self.backend.all[0]) for value in outs]

    def as_text(self) -> str:
        return str(self.closed)

    def cost_analysis(self) -> dict[str, float]:
        return {}

    def memory_analysis(self) -> dict[str, int]:
        return {}


class Toy(Backend):
    """Programs by the kernel's own evaluation, on two devices."""

    name = "toy"
    capabilities = Capabilities(platforms=("abacus", "slide_rule"), dtypes=frozenset({"float32", "int32", "bool"}))
    buffer_type = ToyBuffer
    device_type = ToyDevice

    def __init__(self) -> None:
        self.all = [ToyDevice(0), ToyDevice(1)]
        self.compiled: list[tuple[str, str | None]] = []
        self.awaited = 0

    def devices(self, platform: str | None = None) -> list[ToyDevice]:
        return self.all

    def put(self, value: Any, aval: ShapedArray, device: ToyDevice | None = None) -> ToyBuffer:
        return ToyBuffer(value.value if isinstance(value, ToyBuffer) else value, device or self.all[0])

    def fetch(self, buffer: ToyBuffer) -> Any:
        return buffer.value

    def device_of(self, buffer: ToyBuffer) -> ToyDevice:
        return buffer.device

    def block_until_ready(self, buffers: Sequence[ToyBuffer]) -> None:
        self.awaited += len(buffers)

    def compile(self, closed: ClosedJaxpr, *, name: str, platform: str | None = None) -> ToyExecutable:
        self.compiled.append((name, platform))
        return ToyExecutable(self, closed)


class Provides:
    """A plugin with backends."""

    def __init__(self, provided: Any) -> None:
        self.provided = provided

    @hookimpl
    def corejax_provide_backends(self) -> Any:
        return self.provided


Register = Callable[..., Any]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers plugins, which are gone afterwards; gives the record."""
    names = []

    def add(name: str, provided: Any) -> Any:
        record = corejax.plugins.manager().register(Provides(provided), name, "1.0")
        names.append(name)
        return record

    yield add
    for name in reversed(names):
        corejax.plugins.manager().unregister(name)


@pytest.fixture
def toy(register: Register, monkeypatch: pytest.MonkeyPatch) -> Toy:
    module = types.ModuleType("acme_toy_backend")
    module.TOY = Toy()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_toy_backend", module)
    register("acme_toy", {"toy": "acme_toy_backend:TOY"})
    return module.TOY  # type: ignore[attr-defined, no-any-return]


def says_no(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("the driver says no")


def interrupts(*args: Any, **kwargs: Any) -> Any:
    signal.raise_signal(signal.SIGINT)


# -- what it promises ------------------------------------------------------------------------------

WHOSE = r"backend 'toy', of plugin 'acme_toy' \(acme_toy 1\.0\)"


@pytest.mark.parametrize(
    ("where", "method", "given", "message"),
    [
        (Toy, "compile", None, "its compile returned None for '<lambda>', which has no 'run'"),
        (Toy, "put", np.zeros(3), r"its put returned array\(\[0., 0., 0.\]\) of type ndarray for f32"),
        (ToyExecutable, "run", None, "its run returned None; the program has 1 result: expected a list of"),
        (ToyExecutable, "run", [], "its run returned 0 buffers; the program has 1 result"),
        (ToyExecutable, "run", [X], "its run returned array.* for result 0; its buffers are of .* ToyBuffer"),
        (Toy, "fetch", None, r"its fetch returned None; expected a NumPy array for f32\[3\]"),
        (Toy, "fetch", [1, 2, 3], r"its fetch returned \[1, 2, 3\] of type list; expected a NumPy array"),
        (Toy, "fetch", X[:2], r"its fetch returned an array of shape \(2,\) and dtype float32 for f32\[3\]"),
        (Toy, "fetch", X.astype("float64"), r"its fetch returned an array of shape \(3,\) and dtype float64 for"),
    ],
)
def test_what_it_gives_is_checked(
    where: Any, method: str, given: Any, message: str, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = jit(lambda x: x + 1, backend="toy")
    with monkeypatch.context() as patch:
        patch.setattr(where, method, lambda *args, **kwargs: given)
        for _ in range(2):
            with pytest.raises(BackendError, match=f"{WHOSE}: {message}.*test_backends.py"):
                np.asarray(f(X))
    np.testing.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("given", [[], None])
def test_a_backend_has_devices(given: Any, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy, "devices", lambda platform=None: given)
    with pytest.raises(BackendError, match=r"backend 'toy': its devices.* returned .*; it has to return a list of"):
        jit(lambda x: x + 1, backend="toy")(X)


@pytest.mark.parametrize(
    ("where", "method"), [(Toy, "put"), (Toy, "compile"), (Toy, "fetch"), (ToyExecutable, "run"), (Toy, "device_of")]
)
def test_what_it_raises_names_it(where: Any, method: str, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> Any:
        out = f(X)
        return np.asarray(out), out.devices()

    f = jit(lambda x: x + 1, backend="toy")
    with monkeypatch.context() as patch:
        patch.setattr(where, method, says_no)
        with pytest.raises(RuntimeError, match="the driver says no") as caught:
            call()
        [note] = caught.value.__notes__
        assert note.startswith("This came out of backend 'toy', of plugin 'acme_toy' (acme_toy 1.0): ")
        assert f"{where.__name__}.{method}" in note and "test_backends.py:" in note
        patch.setattr(where, method, interrupts)
        with pytest.raises(KeyboardInterrupt):
            call()
        patch.setattr(where, method, lambda: None)  # takes no arguments
        with pytest.raises(TypeError) as caught:
            call()
        assert f"{where.__name__}.{method}" in caught.value.__notes__[0]
    np.testing.assert_array_equal(call()[0], X + 1)
    assert len(trace_stack()) == 1


def test_what_a_program_raises_is_not_the_backend_s(toy: Toy) -> None:
    def refuses(x: Any) -> Any:
        raise ZeroDivisionError("user's own")

    with pytest.raises(ZeroDivisionError) as caught:
        jit(lambda x: corejax.pure_callback(refuses, x, x), backend="toy")(X)
    assert not any("backend 'toy'" in note for note in getattr(caught.value, "__notes__", ()))
    with corejax.config.override(debug_nans=True), pytest.raises(FloatingPointError) as nan:
        jit(lambda x: lax.log(x - 2), backend="toy")(X)
    assert not getattr(nan.value, "__notes__", ())


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("buffer_type", None, "buffer_type has to be a class, got None"),
        ("buffer_type", np.ndarray, "buffer_type has to be a class of its own, got <class 'numpy.ndarray'>"),
        ("device_type", "cpu", "device_type has to be a class, or a union of some, got 'cpu'"),
        ("name", 3, "name has to be a string, got 3"),
        ("capabilities", None, "lacks capabilities"),
        ("capabilities", Capabilities(platforms=()), "capabilities.platforms has to name at least one platform"),
    ],
)
def test_its_attributes_are_checked(
    name: str, given: Any, message: str, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, name, given)
    with pytest.raises(PluginError, match=message):
        jit(lambda x: x + 1, backend="toy")(X)


# -- which one -------------------------------------------------------------------------------------


def test_the_first_backend_is_the_default(toy: Toy) -> None:
    assert backends.names() == ["xla", "toy"]
    assert backends.find().backend.name == "xla"
    jit(lambda x: x + 1)(X)
    assert not toy.compiled


def test_by_name_by_platform_and_by_setting(toy: Toy) -> None:
    def f(x: Any) -> Any:
        return x + 1

    np.testing.assert_array_equal(jit(f, backend="toy")(X), X + 1)
    np.testing.assert_array_equal(jit(f, backend="slide_rule")(X), X + 1)
    with corejax.config.override(backend="toy"):
        np.testing.assert_array_equal(jit(f)(X), X + 1)
        assert corejax.default_backend() == "abacus" and corejax.devices() == toy.all
        assert jit(f, backend="cpu")(X).devices() == set(corejax.devices("cpu")[:1]), "only the other one has it"
    with corejax.config.override(backend="slide_rule"):
        np.testing.assert_array_equal(jit(f)(X), X + 1)
        assert corejax.default_backend() == "slide_rule"
    assert toy.compiled == [("f", None), ("f", "slide_rule")], "programs of one function are compiled once"


def test_an_unknown_one(toy: Toy) -> None:
    f = jit(lambda x: x + 1, backend="tpu")
    for call in (lambda: f(X), lambda: f.lower(X), lambda: corejax.devices("tpu")):
        with pytest.raises(BackendError, match=r"Unknown backend 'tpu'.*'xla' \(platforms cpu.*'toy' \(pl"):
            call()
    with corejax.config.override(backend="quantum"), pytest.raises(BackendError, match=r"'quantum' \(the setting back"):
        jit(lambda x: x + 1)(X)
    with pytest.raises(ValueError, match="backend is a name, got 3"):
        corejax.config.update("backend", 3)


def test_a_dispatcher_that_is_made_already_follows_the_setting(toy: Toy) -> None:
    f = jit(lambda x: x + 1)
    for _ in range(3):
        assert f(X).devices() == {corejax.devices()[0]}
    with corejax.config.override(backend="toy"):
        for _ in range(3):
            assert f(f(X)).devices() == {toy.all[0]}
    assert f(X).devices() == {corejax.devices()[0]} and len(toy.compiled) == 1


# -- what it is asked ------------------------------------------------------------------------------


def test_a_program_is_compiled_once_and_forgotten_with_the_caches(toy: Toy) -> None:
    f = jit(lambda x: x + 1, backend="toy")
    events: list[Any] = []
    with observe.observing(events.append):
        for _ in range(3):
            f(X)
    facts = {"platform": "abacus", "equations": 1}
    assert [event.facts for event in events if event.kind == "compile"] == [facts]
    assert len(toy.compiled) == 1
    f(X[:2])
    assert len(toy.compiled) == 2
    corejax.clear_caches()
    f(X)
    assert len(toy.compiled) == 3


def test_arrays_go_from_one_to_the_other(toy: Toy) -> None:
    on_toy, on_xla = jit(lambda x: x * 2, backend="toy"), jit(lambda x: x + 1)
    y = on_toy(on_xla(X))
    assert y.devices() == {toy.all[0]}
    np.testing.assert_array_equal(y, (X + 1) * 2)
    for _ in range(3):
        np.testing.assert_array_equal(on_xla(y), (X + 1) * 2 + 1)
    closing = jit(lambda x: x + y)
    for _ in range(3):
        np.testing.assert_array_equal(closing(X), X + np.asarray(y))
    assert closing.lower(X).compile()(X).devices() == {corejax.devices()[0]}
    moved = corejax.device_put(y, toy.all[1])
    assert moved.devices() == {toy.all[1]} and corejax.device_put(moved, toy.all[1]) is moved
    assert corejax.device_put(X, toy.all[1]).devices() == {toy.all[1]}
    assert corejax.device_put(moved, corejax.devices()[0]).devices() == {corejax.devices()[0]}
    corejax.block_until_ready([on_toy(X), on_xla(X), on_toy(X).block_until_ready()])
    assert toy.awaited == 3
    with pytest.raises(TypeError, match=r"one of corejax\.devices\(\), or a sharding .*, got 'cpu'"):
        corejax.device_put(X, "cpu")


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "nested": lambda x: jit(lambda y: jit(lax.sin)(y) * x)(x * 2),
    "scan": lambda x: lax.scan(jit(lambda c, a: (c + lax.sin(a), c)), np.float32(0), x),
    "cond": lambda x: lax.cond(x[0] > 0, jit(lax.sin), jit(lax.cos), x),
    "constant": lambda x: lax.mul(x, corejax.device_put(X)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["jit", "jit of grad", "grad of jit", "vmap of jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, how: str, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second backend's values are the first one's, and nothing of a program on the second goes to the first."""

    def f(x: Any) -> Any:
        leaves = corejax.tree.tree_leaves(PROGRAMS[name](x))
        return sum(lax.reduce_sum(leaf, tuple(range(leaf.ndim))) for leaf in leaves)

    make: dict[str, Callable[..., Any]] = {
        "jit": lambda **options: jit(f, **options),
        "jit of grad": lambda **options: jit(corejax.grad(f), **options),
        "grad of jit": lambda **options: corejax.grad(jit(f, **options)),
        "vmap of jit": lambda **options: lambda x: corejax.vmap(jit(f, **options))(np.stack([x, 2 * x])),
    }
    wanted = make[how]()(X)
    monkeypatch.setattr(type(backends.load("xla")), "compile", lambda *args, **kwargs: pytest.fail("asked XLA"))
    np.testing.assert_allclose(make[how](backend="toy")(X), wanted, rtol=1e-6)


# -- what it lacks ---------------------------------------------------------------------------------


def test_a_dtype_that_it_has_not(toy: Toy) -> None:
    def inner(x: Any) -> Any:
        return lax.scan(lambda c, a: (c, a.astype(np.int16)), x[0], x)[1]

    np.testing.assert_array_equal(jit(lambda x: x > 1, backend="toy")(X), X > 1)
    for f in (lambda x: x.astype(np.float64), inner):
        with pytest.raises(
            BackendError, match=r"'toy' has no dtype (float64|int16), which .* uses .*; the backend has bool"
        ):
            jit(f, backend="toy")(X)


def test_no_lowering(toy: Toy) -> None:
    lowered = jit(lambda x: x + 1, backend="toy").lower(X)
    with pytest.raises(BackendError, match="backend 'toy' compiles programs without lowering them to a text"):
        lowered.as_text()
    compiled = lowered.compile()
    assert "add" in compiled.as_text() and compiled.cost_analysis() == {}
    np.testing.assert_array_equal(compiled(X), X + 1)


def test_a_backend_says_what_it_does_not_do() -> None:
    backend = Backend()
    for call in (backend.devices, lambda: backend.put(X, None), lambda: backend.fetch(None)):
        with pytest.raises(NotImplementedError):
            call()
    assert backend.platform() == "cpu"


# -- plugins ---------------------------------------------------------------------------------------


def test_one_that_cannot_be_imported_is_recorded_and_others_work(register: Register, toy: Toy) -> None:
    record = register("acme_broken", {"broken": "acme_no_such_module:BACKEND"})
    assert record.status == "loaded" and backends.names() == ["xla", "toy", "broken"]
    f = jit(lambda x: x + 1, backend="broken")
    for _ in range(2):
        with pytest.raises(PluginError, match=r"backend 'broken' comes from plugin 'acme_broken' .*No module named"):
            f(X)
    np.testing.assert_array_equal(jit(lambda x: x + 1, backend="toy")(X), X + 1)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)
    with pytest.raises(BackendError, match="'tpu'"):
        corejax.devices("tpu")
    assert any("failed to load its backend 'broken': ModuleNotFoundError" in p for p in record.problems())
    shown = CliRunner().invoke(main, ["plugins", "acme_broken"], prog_name="corejax")
    assert shown.exit_code == 1 and "backend 'broken': ModuleNotFoundError" in shown.output
    assert "acme_broken: backends broken" in shown.output


def test_what_is_no_backend(register: Register) -> None:
    register("acme_wrong", {"wrong": "math:pi"})
    with pytest.raises(PluginError, match=r"math:pi, which must be a corejax\.extend\.Backend; it is 3\.14"):
        jit(lambda x: x + 1, backend="wrong")(X)


class Half(Backend):
    """It says that it lowers programs, and has next to nothing."""

    name = "half"
    capabilities = Capabilities(lowering="text")
    buffer_type = ToyBuffer

    def compile(self, closed: ClosedJaxpr, *, name: str, platform: str | None = None) -> Any:
        raise AssertionError("nobody asks")


def test_one_that_is_not_complete_is_told_what_it_lacks(register: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_half_backend")
    module.HALF = Half()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    record = register("acme_half", {"half": "acme_half_backend:HALF"})
    wanted = (
        r"acme_half_backend:HALF, lacks devices, put, fetch, device_of, lower, device_type; "
        r"see corejax\.extend\.Backend"
    )
    with pytest.raises(PluginError, match=wanted):
        jit(lambda x: x + 1, backend="half")(X)
    assert record.status == "loaded" and any("lacks devices" in problem for problem in record.problems())
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)


def test_a_second_one_of_a_name_is_refused(register: Register, toy: Toy) -> None:
    for name in ("toy", "xla"):
        record = register(f"acme_second_{name}", {name: "acme_toy_backend:TOY"})
        assert record.status == "failed"
        assert f"backend {name!r} is provided by plugin" in str(record.fault) and "a second one" in str(record.fault)
    np.testing.assert_array_equal(jit(lambda x: x + 1, backend="toy")(X), X + 1)
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)


@pytest.mark.parametrize(
    ("provided", "message"),
    [
        (["toy"], r"corejax_provide_backends must return a mapping such as .*, this one returned \['toy'\]"),
        ({"toy": 3}, r"must return entries such as .*, got 'toy': 3"),
        ({"toy": "acme_backend"}, r"must return entries such as .*, got 'toy': 'acme_backend'"),
        ({"My Toy": "acme:TOY"}, r"a backend's name must be lower-case letters.*; got 'My Toy'"),
    ],
)
def test_what_the_hook_gives_is_checked(register: Register, provided: Any, message: str) -> None:
    record = register("acme_odd", provided)
    assert record.status == "failed"
    with pytest.raises(PluginError, match=message):
        raise record.fault


def test_a_plugin_that_is_gone_takes_its_backend_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("acme_gone_backend")
    module.TOY = Toy()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_gone_backend", module)
    f = jit(lambda x: x + 1, backend="gone")
    manager = corejax.plugins.manager()
    manager.register(Provides({"gone": "acme_gone_backend:TOY"}), "acme_gone")
    y = f(X)
    manager.unregister("acme_gone")
    assert backends.names() == ["xla"]
    with pytest.raises(BackendError, match="'gone'"):
        f(X)
    with pytest.raises(corejax.errors.PluginMissingError):
        np.asarray(y)


def test_listed_without_importing_it() -> None:
    shown = CliRunner().invoke(main, ["plugins", "xla_backend", "--json"], prog_name="corejax")
    assert '"backends": [\n        "xla"\n      ]' in shown.output
