"""Values larger than the memory, or than can be counted: errors with shape and bytes, before anything is allocated."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import ShapeDtypeStruct, config, eval_shape, grad, jit, lax, make_jaxpr, nn, vmap
from corejax.ir import parse_jaxpr

pytest.importorskip("jaxlib")

HUGE = 2**40  # elements: terabytes
F32 = np.float32

# Each makes a value of more bytes than 64-bit integers count: refused when its type is known, traced or not.
UNCOUNTABLE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: jnp.zeros((HUGE, HUGE)) + 1,
    "one axis": lambda: jnp.zeros(2**70),
    "no elements": lambda: jnp.zeros((0, 2**70)),
    "pad": lambda: lax.pad(jnp.ones(3), 0.0, [(0, 0, 2**61)]),
    "concatenate": lambda: jnp.concatenate([jnp.zeros(2**60)] * 4),
    "outer": lambda: jnp.outer(jnp.zeros(2**40), jnp.zeros(2**40)),
    "vmap": lambda: vmap(lambda x: jnp.ones(2**40) * x)(jnp.zeros(2**40)),
    "iota": lambda: lax.iota(np.int32, 2**62),
    "scan": lambda: lax.scan(lambda c, _: (c, c), jnp.zeros(2**31), None, length=2**31),
}
# Each makes a value that can be counted, and held by no machine.
TOO_LARGE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: jnp.zeros(HUGE),
    "sum": lambda: jnp.sum(jnp.zeros(HUGE)),
    "arange": lambda: jnp.arange(HUGE),
    "broadcast": lambda: jnp.broadcast_to(jnp.ones(3), (HUGE, 3)),
    "pad": lambda: lax.pad(jnp.ones(3), 0.0, [(HUGE, 0, 0)]),
    "dot": lambda: jnp.zeros((2**22, 1)) @ jnp.zeros((1, 2**22)),
    "one_hot": lambda: nn.one_hot(jnp.zeros(2**10, np.int32), 2**40),
    "vmap": lambda: vmap(lambda x: jnp.ones(2**30) * x)(jnp.zeros(2**20)),
    "grad": lambda: grad(lambda x: jnp.sum(jnp.zeros(HUGE) * x))(1.0),
    "scan": lambda: lax.scan(lambda c, _: (c, c), jnp.zeros(2**20), None, length=2**30),
    "loop": lambda: lax.fori_loop(0, 3, lambda i, c: c + jnp.sum(jnp.ones(HUGE)), 0.0),
}


@pytest.mark.parametrize("how", [lambda f: f, jit, eval_shape, make_jaxpr], ids=["eager", "jit", "shape", "jaxpr"])
@pytest.mark.parametrize("case", UNCOUNTABLE)
def test_more_than_can_be_counted(case: str, how: Callable[..., Any]) -> None:
    with pytest.raises((OverflowError, MemoryError), match=r"shape \(.* (bytes|size)") as caught:
        called = how(UNCOUNTABLE[case])
        called() if how is not eval_shape else None
    assert "primitive" in str(caught.value) and "test_impossible_sizes.py" in str(caught.value)


@pytest.mark.parametrize("case", TOO_LARGE)
def test_more_than_the_memory_eagerly(case: str) -> None:
    with pytest.raises(MemoryError, match=r"primitive '\w+' at .*test_impossible_sizes.py.* shape \(.* bytes \(.*iB\)"):
        TOO_LARGE[case]()


@pytest.mark.parametrize("case", TOO_LARGE)
def test_types_of_large_values_are_known(case: str) -> None:
    assert make_jaxpr(TOO_LARGE[case])().eqns
    eval_shape(TOO_LARGE[case])


RESULTS: dict[str, Callable[..., Any]] = {
    "result": lambda x: jnp.zeros(HUGE) + x,
    "iota": lambda x: jnp.arange(HUGE) * x,
    "outer": lambda x: jnp.outer(jnp.ones(2**22) * x, jnp.ones(2**22)),
    "between": lambda x: jnp.sum(jnp.cumsum(jnp.zeros(HUGE) + x)),
    "stacked": lambda x: lax.scan(lambda c, _: (c, c), jnp.zeros(2**20) + x, None, length=2**20),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_program_larger_than_the_memory(case: str) -> None:
    """Compiled, it may be looked at; run, it would end the process."""
    compiled = jit(RESULTS[case]).lower(1.0).compile()
    sizes = compiled.memory_analysis()
    assert sizes["output"] + sizes["temp"] > HUGE
    for call in (compiled, jit(RESULTS[case])):
        with pytest.raises(MemoryError, match=r"program '<lambda>', with results \[.*\], .* takes \d+ bytes \(.*iB\)"):
            call(1.0)


def test_a_program_whose_large_values_never_exist() -> None:
    assert jit(lambda x: grad(lambda y: jnp.sum(jnp.zeros(HUGE) * y))(x))(1.0) == 0
    assert jit(lambda: jnp.zeros((0, HUGE, HUGE)) + 1)().shape == (0, HUGE, HUGE)


def test_a_program_that_no_address_reaches() -> None:
    with pytest.raises(MemoryError, match=r"shape \(1125899906842624,\) .* which is more than a program can address"):
        jit(lambda x: x + 1).lower(ShapeDtypeStruct((2**50,), F32))


def test_an_argument_larger_than_the_memory() -> None:
    with pytest.raises(MemoryError, match=r"a buffer for an array of shape \(1099511627776,\) .* 4398046511104 bytes"):
        jit(lambda x: x[0])(np.broadcast_to(F32(0), (HUGE,)))


def test_the_limit_is_a_setting() -> None:
    f = jit(lambda x: jnp.zeros(2**28 + 1) + x)
    with config.override(memory_limit=2**30):
        with pytest.raises(MemoryError, match=re.escape("more than the 1073741824 bytes (1.0 GiB) of memory")):
            f(1.0)
        with pytest.raises(MemoryError, match="primitive 'broadcast_in_dim'"):
            jnp.zeros(2**28 + 1)
        assert f.eval_shape(1.0).shape == (2**28 + 1,)
    assert jnp.zeros(2**28 + 1).shape == (2**28 + 1,)  # a view of one element
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
        config.update("memory_limit", -1)


def test_after_an_impossible_size_everything_works() -> None:
    f = jit(lambda x, n: jnp.zeros(n) + x, static_argnums=1)
    with pytest.raises(MemoryError):
        f(1.0, HUGE)
    np.testing.assert_array_equal(f(1.0, 3), [1, 1, 1])


@pytest.mark.parametrize("case", [(-1,), (2, -3)])
@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_negative_sizes(case: tuple[int, ...], how: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"not negative, got shape {case}")):
        how(lambda: jnp.zeros(case))()


def test_the_type_itself() -> None:
    assert corejax.ShapedArray((2**60,), F32).nbytes == 2**62
    with pytest.raises(OverflowError, match=r"shape \(4611686018427387904,\) and dtype float32 takes"):
        corejax.ShapedArray((2**62,), F32)
    with pytest.raises(ValueError, match=r"is not a shape"):
        parse_jaxpr("{ lambda ; a:f32[99999999999999999999]. let in (a,) }")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's heap")
@pytest.mark.engine
def test_memory_of_large_arrays_is_used_again():
    program = (
        "import resource\n"
        "import numpy as np\n"
        "import corejax.numpy as jnp\n"
        "x, y = (jnp.asarray(np.full((1024, 1024), v, np.float32)) for v in (1, 2))\n"
        "for _ in range(3):\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    [x - y * 0.5 for _ in range(4)]\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )
    pages = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert pages < 500  # of the 4,096 and more of four results
