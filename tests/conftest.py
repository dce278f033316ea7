"""For every test: a known environment, checked jaxprs, reproducible examples, a clean trace stack."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import oracle, recorded, rewriting, sampling
from tests.own_process import (
    pytest_runtest_logreport,
    pytest_runtest_protocol,
    pytest_runtestloop,
    pytest_sessionfinish,
)

__all__ = ["pytest_runtest_logreport", "pytest_runtest_protocol", "pytest_runtestloop", "pytest_sessionfinish"]  # hooks

# corejax reads its settings when it is first imported, so this comes before any test module imports it:
# whatever the developer's shell says, tests start from the defaults, with the jaxpr type checker on.
for _name in [name for name in os.environ if name.startswith("COREJAX_")]:
    del os.environ[_name]
os.environ["COREJAX_CHECK_JAXPRS"] = "1"
os.environ["COREJAX_COMPILATION_CACHE_DIR"] = ""  # tests compile, and leave nothing in the user's cache
gc.set_threshold(10_000, 20, 20)  # traces are garbage by the million; what a file leaves is collected at its end
# The oracle would otherwise look for accelerators, and say so in warnings.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A shell has what it starts in the background ignore interrupts, which child processes inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tracing and compiling make first calls slow, so no deadline. "ci" repeats the same examples in every run, a fifth of
# what a test says by default and all in `make test-slow`; HYPOTHESIS_PROFILE=explore searches for new ones.
settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
if "HYPOTHESIS_PROFILE" not in os.environ:
    # It would read all modules there are for numbers to try, in 10 s a process, and which ones a process has differs.
    providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]
_FEWER_EXAMPLES = 5


HERE = Path(__file__).parent
# Where another jaxlib or Python shows first: run whole also with `--one-of-each`.
_WHOLE = HERE / "xla_backend"
# Where every primitive's numbers are compared as users have them, XLA optimises; elsewhere compiling would be half of
# all that tests do. All is optimised in `make test-newest`, and in `make test-slow`, which repeats tests of `numbers`.
_OPTIMISED = {
    HERE / name
    for name in (
        "integration/test_all_primitives.py",
        "lax_basic/elementwise/test_every_dtype.py",
        "lax_basic/special/test_float32.py",
        "numpy_api/test_scaled_products.py",
        "parallel/test_ahead_of_time.py",
        "random/keys",
        "scipy_api/special/test_float32.py",
        "xla_backend/test_jit.py",
        "xla_backend/test_jit_options.py",
        "xla_backend/test_large_programs.py",
        "xla_backend/test_quick_compilation.py",
        "xla_backend/test_stablehlo.py",
    )
}
_QUICK = "COREJAX_DISABLE_MOST_OPTIMIZATIONS"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options for other environments."""
    parser.addoption(
        "--one-of-each", action="store_true", help="run tests/xla_backend whole, and one test of each other file"
    )
    parser.addoption("--plain", action="store_true", help="run without corejax-eager, and not its own tests")


def pytest_configure(config: pytest.Config) -> None:
    """Before corejax is imported, also by processes that tests start."""
    if config.getoption("--plain"):
        os.environ["COREJAX_PLUGINS"] = "-eager"
    if not config.getoption("--one-of-each") and config.getoption("-m") == "not slow":
        os.environ[_QUICK] = "1"
        oracle.configure(config)  # it compiles no more than we do
    recorded.LIVE = config.getoption("-m") != "not slow" and importlib.util.find_spec("jax") is not None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import what others have rewritten."""
    rewriting.rewrite_a_share(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give out files, unless another way is asked for."""
    if config.getoption("dist") != "load":
        return None
    from tests.scheduling import ByFile

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no items of what is left out."""
    yield
    if metafunc.config.getoption("-m") == "not slow":
        sampling.thin(metafunc)
    if metafunc.config.getoption("--one-of-each") and _WHOLE not in metafunc.definition.path.parents:
        del metafunc._calls[1:]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Take parts of long tests, and leave out what the options say."""
    if config.getoption("-m") != "not slow":
        sampling.mark_the_rest_slow(items)
    yield  # `-m` and `-k` choose
    if config.getoption("-m") == "not slow" and "HYPOTHESIS_PROFILE" not in os.environ:
        _take_fewer_examples(items)
    chosen = dict.fromkeys(items, True)
    if config.getoption("--one-of-each"):
        first = {item.path: item for item in reversed(items)}
        chosen = {item: item is first[item.path] or _WHOLE in item.path.parents for item in items}
    if config.getoption("--plain"):
        chosen = {
            item: kept and HERE / "eager" not in item.path.parents and item.get_closest_marker("engine") is None
            for item, kept in chosen.items()
        }
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]


def _take_fewer_examples(items: list[pytest.Item]) -> None:
    tests = {getattr(item, "function", None) for item in items if item.get_closest_marker("hypothesis")}
    for test in tests:
        if (given := getattr(test, "_hypothesis_internal_use_settings", None)) is not None:
            few = settings(given, max_examples=-(-given.max_examples // _FEWER_EXAMPLES))
            test._hypothesis_internal_use_settings = few  # type: ignore[union-attr]


def _take_leftovers() -> list[str]:
    """Describe what a test left in this thread's interpreter state, and put the state right again.

    So one failure does not fail every test after it. Nothing is imported: no corejax, no leftovers.
    """
    module = sys.modules.get("corejax.core.trace")
    if module is None:
        return []
    state, found = module.state, []
    # `corejax.core.trace.state` is thread-local and its class attributes are what a new thread starts with: they
    # say what is clean. What a thread merely caches in it has no class attribute.
    for name, clean in sorted(vars(type(state)).items()):
        if name.startswith("_"):
            continue
        value = getattr(state, name)
        if value is not clean and value != clean:
            found.append(f"{name} is {value!r}, expected {clean!r}")
            delattr(state, name)
    return found


@pytest.fixture(autouse=True, scope="module")
def collections_of_one_file() -> None:
    """The garbage collector looks no more at what earlier files left: traces and programs by the million."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def optimised(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether XLA optimises what a file's tests compile."""
    if _QUICK not in os.environ or not _is_optimised(request.path):
        yield
        return
    corejax = __import__("corejax")
    corejax.config.update("disable_most_optimizations", False)
    del os.environ[_QUICK]
    yield
    corejax.config.update("disable_most_optimizations", True)
    os.environ[_QUICK] = "1"


@pytest.fixture(autouse=True, scope="module")
def as_large_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where every primitive's numbers are compared, small programs are compiled as large ones are.

    The author's kit compares them once more, and as they are.
    """
    if _WHOLE in request.path.parents or not _is_optimised(request.path):
        yield
        return
    from corejax_xla_backend._xla import flags

    sizes = flags.SMALL, flags.SMALL_KERNEL
    flags.SMALL = flags.SMALL_KERNEL = -1
    yield
    flags.SMALL, flags.SMALL_KERNEL = sizes


def _is_optimised(path: Path) -> bool:
    return not _OPTIMISED.isdisjoint([path, *path.parents])


@pytest.fixture(autouse=True, scope="module")
def quick_oracle(optimised: None) -> None:
    """jax, if a file's tests compare with it, compiles little."""
    oracle.quicken()


@pytest.fixture
def optimised_oracle() -> Iterator[None]:
    """jax compiles as its users have it: where its bits are compared, and roundings depend on what is fused."""
    jax = pytest.importorskip("jax")
    flags = oracle.flags()
    given = dict(flags)
    jax.clear_caches()
    flags.clear()
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.clear_caches()
    flags.update(given)
    jax.config.update("jax_disable_most_optimizations", "JAX_DISABLE_MOST_OPTIMIZATIONS" in os.environ)


@pytest.fixture(autouse=True)
def clean_trace_stack() -> Iterator[None]:
    """Fail a test that leaves a trace on the stack, whether it passed by itself or not."""
    yield
    leftovers = _take_leftovers()
    if leftovers:
        pytest.fail("the test left interpreter state behind: " + "; ".join(leftovers), pytrace=False)


@pytest.fixture(autouse=True)
def same_settings() -> Iterator[None]:
    """Undo a test's `config.update`; settings that a plugin added meanwhile stay."""
    before = _settings()
    yield
    if (module := sys.modules.get("corejax.settings.config")) is not None:
        vars(module.config).update(before or _settings(module.config.__class__()))


@pytest.fixture(autouse=True, scope="module")
def small_process() -> Iterator[None]:
    """Drop what corejax keeps when a module's tests are done, so that a test process does not grow."""
    yield
    if (module := sys.modules.get("corejax.settings.caches")) is not None:
        module.clear_caches()


def _settings(config: object = None) -> dict[str, object]:
    """Values of all settings (of the process's, where none is given); empty if corejax was not imported."""
    if config is None and "corejax.settings.config" in sys.modules:
        config = sys.modules["corejax.settings.config"].config
    return {name: value for name, value in getattr(config, "__dict__", {}).items() if name[0] != "_"}
