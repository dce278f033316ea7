"""Toy primitives and random programs over them: the kernel's tests need no plugin."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st

from corejax import dtypes
from corejax.arrays.array import Array
from corejax.core.avals import ShapedArray
from corejax.core.primitive import Primitive
from corejax.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, register_param_type
from corejax.messages import source_info
from tests.kernel.toys import add_p
from tests.kernel.toys import mul_p as mul_p
from tests.kernel.toys import print_p as print_p
from tests.kernel.toys import sin_p as sin_p
from tests.kernel.toys import sum_p as sum_p
from tests.kernel.toys.primitives import nary

FIXTURES = Path(__file__).parents[1] / "fixtures" / "jaxprs"


def cases(name: str) -> list[Any]:
    """The cases of a fixture file: `# ---- title`, the text, and if any, `# =>` and what is wanted."""
    found = []
    for case in (FIXTURES / name).read_text().split("# ---- ")[1:]:
        title, _, body = case.partition("\n")
        text, _, wanted = body.partition("# =>\n")
        found.append(pytest.param(text.strip("\n"), wanted.strip("\n"), id=title.strip().replace(" ", "-")))
    return found


# -- primitives ----------------------------------------------------------------------------------------------


def _dot(a: ShapedArray, b: ShapedArray, *, dimension_numbers: Any, preferred_element_type: Any) -> ShapedArray:
    ((da,), (db,)), _ = dimension_numbers
    return ShapedArray((*a.shape[:da], *a.shape[da + 1 :], *b.shape[:db], *b.shape[db + 1 :]), preferred_element_type)


dot_p = Primitive("toy.dot_general", abstract_eval=_dot)
odd_p = Primitive("toy odd's", abstract_eval=nary("odd"))
# Any operands, any parameters; `outs` says what it gives.
make_p = Primitive("toy.make", multiple_results=True, abstract_eval=lambda *avals, outs, **params: list(outs))
call_p = Primitive(
    "toy.call",
    multiple_results=True,
    tags=("higher_order",),
    abstract_eval=lambda *avals, jaxpr, **params: jaxpr.out_avals,
)
cond_p = Primitive(
    "toy.cond",
    multiple_results=True,
    tags=("higher_order",),
    abstract_eval=lambda *avals, branches, **params: next(b for b in branches if b is not None).out_avals,
)


@register_param_type
class ToyMode(enum.Enum):
    """An enum as a parameter."""

    CLIP = 1
    FILL = 2


@register_param_type
class ToyFlag(enum.Flag):
    """A flag, whose members combine."""

    A = 1
    B = 2


@register_param_type
class ToyNumbers(NamedTuple):
    """A named tuple as a parameter."""

    lhs: tuple[int, ...]
    rhs: Any = None


@register_param_type
@dataclasses.dataclass(frozen=True)
class ToyOptions:
    """A dataclass as a parameter."""

    name: str
    scale: float = 1.0


# -- random programs -----------------------------------------------------------------------------------------

_dtypes = [
    np.dtype(t)
    for t in (np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64)
] + [np.dtype(t) for t in (np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4)]

avals = st.builds(
    ShapedArray,
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
    st.sampled_from(_dtypes),
    st.booleans(),
)


def values(aval: ShapedArray) -> st.SearchStrategy[np.ndarray]:
    """Arrays of a type; inexact ones have any bits, so that all kinds of NaN occur."""
    d, n = aval.dtype, aval.size
    if dtypes.is_inexact(d):
        raw = st.binary(min_size=n * d.itemsize, max_size=n * d.itemsize)
        nice = st.lists(st.sampled_from([0.0, -0.0, 1.0, 0.1, np.nan, -2.5]), min_size=n, max_size=n)
        drawn = raw.map(lambda b: np.frombuffer(b, d)) | nice.map(lambda xs: np.array(xs).astype(d))
    else:
        limits = (0, 1) if dtypes.is_bool(d) else (int(dtypes.iinfo(d).min), int(dtypes.iinfo(d).max))
        drawn = st.lists(st.integers(*limits), min_size=n, max_size=n).map(lambda xs: np.array(xs, dtype=d))
    return drawn.map(lambda x: x.reshape(aval.shape))


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    """Literals of NumPy and of Python scalars."""
    if draw(st.integers(0, 3)) == 0:
        return Literal(draw(st.booleans() | st.integers(-5, 5) | st.floats(width=32) | st.just(1 - 2j)))
    aval = draw(avals).update(shape=())
    return Literal(draw(values(aval))[()], aval)


_simple = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.sampled_from([*_dtypes, *ToyMode, ToyFlag.A, ToyFlag.A | ToyFlag.B])
    | avals
    | avals.map(lambda a: a.update(shape=())).flatmap(values).map(lambda x: x[()])
    | st.builds(ToyOptions, st.text(max_size=3), st.floats(allow_nan=False))
    | st.frozensets(st.integers(), max_size=3)
)
params = st.recursive(
    _simple,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.builds(ToyNumbers, st.lists(st.integers(), max_size=2).map(tuple), inner)
    ),
    max_leaves=6,
)
_names = st.text("abcxyz_", min_size=1, max_size=4).filter(lambda name: name != "outs")


def _eqn(draw: st.DrawFn, env: list[Var], depth: int) -> JaxprEqn:
    atoms = literals() | st.sampled_from(env) if env else literals()
    operands = draw(st.lists(atoms, max_size=3))
    kind = draw(st.sampled_from(["make", "make", "call", "cond"] if depth else ["make"]))
    if kind == "make":
        outs = tuple(draw(st.lists(avals, max_size=3)))
        primitive, given = make_p, {"outs": outs, **draw(st.dictionaries(_names, params, max_size=3))}
    elif kind == "call":
        sub = draw(programs(depth - 1))
        primitive, given, outs = call_p, {"jaxpr": sub, "name": draw(st.text(max_size=3))}, sub.out_avals
    else:
        sub = draw(programs(depth - 1))
        branches = draw(st.sampled_from([(sub,), (sub, sub), (sub, None)]))
        primitive, given, outs = cond_p, {"branches": branches}, sub.out_avals
    return JaxprEqn(primitive, operands, [Var(a) for a in outs], given, source_info.capture_source())


@st.composite
def programs(draw: st.DrawFn, depth: int = 2) -> ClosedJaxpr:
    """Well-typed closed programs."""
    constvars = [Var(a) for a in draw(st.lists(avals, max_size=2))]
    consts = [Array(draw(values(v.aval)), v.aval) for v in constvars]
    invars = [Var(a) for a in draw(st.lists(avals, max_size=3))]
    env = [*constvars, *invars]
    eqns = []
    for _ in range(draw(st.integers(0, 4))):
        eqns.append(_eqn(draw, env, depth))
        env += eqns[-1].outvars
    atoms = literals() | st.sampled_from(env) if env else literals()
    return ClosedJaxpr(Jaxpr(constvars, invars, eqns, draw(st.lists(atoms, max_size=3))), consts)


def chain(length: int) -> ClosedJaxpr:
    """`x + 1.0 + 1.0 + ...`."""
    aval = ShapedArray((3,), np.float32)
    x = start = Var(aval)
    eqns = []
    for _ in range(length):
        eqns.append(JaxprEqn(add_p, [x, Literal(np.float32(1.0))], [Var(aval)], {}))
        x = eqns[-1].outvars[0]
    return ClosedJaxpr(Jaxpr([], [start], eqns, [x]))
