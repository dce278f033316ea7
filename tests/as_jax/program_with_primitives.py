"""A library written for JAX: primitives with rules of all kinds, a trace, transformed functions. Run as a program."""

import collections
import dataclasses
import importlib.metadata
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util as jtu
from jax._src.state.types import AbstractRef
from jax.extend import linear_util as lu
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive, Var, jaxpr_as_fun
from jax.extend.core.primitives import add_p, jit_p
from jax.interpreters import ad, batching, mlir, xla
from jax.interpreters import partial_eval as pe
from jax.interpreters.mlir import ir

assert jax.__version__ == importlib.metadata.version("jax") == "0.10.2" and jax.__corejax__
assert jax.numpy.sin is sys.modules["corejax.numpy"].sin
assert "provided by corejax-as-jax" in jax.print_environment_info(True)

# -- a primitive with rules of JAX's signatures, lowered by MLIR --------------------------------------------------
scale_p = Primitive("scale")
scale_p.def_impl(lambda x, *, factor: jnp.asarray(np.asarray(x) * np.float32(factor)))
scale_p.def_abstract_eval(lambda x, *, factor: jax.core.ShapedArray(x.shape, x.dtype))
ad.deflinear2(scale_p, lambda ct, x, *, factor: [scale_p.bind(ct, factor=factor)])
batching.primitive_batchers[scale_p] = lambda vals, dims, *, factor: (scale_p.bind(*vals, factor=factor), dims[0])


def lower_scale(ctx, x, *, factor):
    from jaxlib.mlir.dialects import stablehlo as hlo

    (aval,) = ctx.avals_out
    factors = mlir.ir_constant(np.full(aval.shape, factor, aval.dtype))
    assert ir.RankedTensorType(x.type) == mlir.aval_to_ir_type(ctx.avals_in[0])
    return hlo.multiply(x, factors).owner.results


mlir.register_lowering(scale_p, lower_scale)


def scale(x):
    return scale_p.bind(x, factor=3.0)


x = jnp.arange(4.0)
assert scale(x).tolist() == jax.jit(scale)(x).tolist() == [0.0, 3.0, 6.0, 9.0]
assert "stablehlo.multiply" in jax.jit(scale).lower(x).as_text()
assert jax.grad(lambda x: jax.jit(scale)(x).sum())(x).tolist() == [3.0] * 4
assert jax.vmap(scale)(x[:, None]).shape == (4, 1) and jax.jvp(scale, (x,), (x,))[1].tolist() == scale(x).tolist()
assert jax.make_jaxpr(scale)(x).eqns[0].primitive is scale_p and scale_p.name == "scale"
assert pickle.loads(pickle.dumps(scale_p)) is scale_p

# -- jitted functions share their traces, and eager products have the last bits of compiled ones ----------------------
traces = []


def traced(x, y=None):
    traces.append(x)
    return x * 2


assert [jax.jit(traced)(x).sum() for _ in range(3)] == [12.0] * 3 and len(traces) == 1
assert jax.jit(traced, static_argnames="y")(x, y=1).sum() == jax.jit(traced)(x[:2]).sum() + 10 and len(traces) == 3
assert jax.jit(traced, static_argnames=["y"])(x, y=1).sum() == 12.0 and len(traces) == 4
rng = np.random.default_rng(0)
for sizes in [(2, 2), (2,), (7, 3)]:
    left = jnp.asarray(rng.standard_normal((5, sizes[0])).astype(np.float32))
    right = jnp.asarray(rng.standard_normal(sizes).astype(np.float32))
    assert ((left @ right) == jax.jit(jnp.matmul)(left, right)).all()

# -- a lowering that calls Python on the host ------------------------------------------------------------------------
asked_p = Primitive("asked")
asked_p.def_impl(lambda x: scale_p.bind(x, factor=2.0))
asked_p.def_abstract_eval(lambda x: x)


def lower_asked(ctx, x):
    call = lambda x: (np.asarray(x) * np.float32(2),)
    results, _, keepalive = mlir.emit_python_callback(ctx, call, None, [x], ctx.avals_in, ctx.avals_out)
    ctx.module_context.add_keepalive(keepalive)
    return results


mlir.register_lowering(asked_p, lower_asked)
assert jax.jit(lambda x: asked_p.bind(x) + asked_p.bind(x + 1))(x).tolist() == [2.0, 6.0, 10.0, 14.0]
assert asked_p.impl(x).tolist() == [0.0, 2.0, 4.0, 6.0]

# -- Python numbers and dtypes, as JAX treats them -------------------------------------------------------------------
assert (jnp.ones(1, "uint16") * -1).tolist() == [65535] and jnp.full(1, -1, "uint8").tolist() == [255]
assert jax.lax.reduce_window(jnp.arange(4), -jnp.inf, jax.lax.max, (2,), (1,), "VALID").tolist() == [1, 2, 3]
for statement in ("jnp.asarray(-1, 'uint8')", "jnp.ones(1, 'int32') * 2**40"):
    try:
        eval(statement)
    except OverflowError:
        continue
    raise AssertionError(statement)
doubled = jax.custom_jvp(lambda x: x * 2)
doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 5))
assert type(doubled(2)) is int and jax.grad(doubled)(1.0) == 5.0 and jax.custom_jvp is jax.custom_derivatives.custom_jvp
assert jax.jvp(jnp.sin, (x,), (x,))[1].shape == (4,)
try:
    jax.jvp(jnp.sin, (x,), (jnp.arange(4),))
except TypeError as found:
    assert "primal and tangent arguments do not match" in str(found)
else:
    raise AssertionError("a tangent of integers is accepted")
assert x.devices() == {x.device} and jax.typeof(x).sharding.mesh.empty and jax.typeof(x).update(sharding=None).ndim == 1


def named(x):
    with jax.named_scope("outer"):
        return jax.jit(jnp.sin)(x)


eqn = jax.make_jaxpr(named)(1.0).eqns[0]
assert str(eqn.source_info.name_stack) == "outer" and eqn.source_info.name_stack.stack == ("outer",)
inner = eqn.params["jaxpr"].eqns[0]
assert inner.source_info.name_stack.stack in ((), ("outer",)) and "sin" in str(jax.make_jaxpr(named)(1.0))

# -- several results, set after the primitive is made; a traced lowering, one inside another -----------------------
both_p = Primitive("both")
both_p.multiple_results = True
both_p.def_impl(lambda *args: xla.apply_primitive(both_p, *args))
both_p.def_abstract_eval(lambda x, y: (x, y))
lowered_both = mlir.lower_fun(lambda x, y: (jnp.sin(x), x * y), multiple_results=True)
mlir.register_lowering(both_p, lambda ctx, x, y: lowered_both(ctx, x, y))


def both_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    assert type(dy) is ad.Zero and dy.aval.shape == y.shape
    return both_p.bind(x, y), [jnp.cos(x) * ad.instantiate_zeros(dx), ad.Zero(y.aval.to_tangent_aval())]


ad.primitive_jvps[both_p] = both_jvp
batching.fancy_primitive_batchers[both_p] = lambda axis, vals, dims: (both_p.bind(*vals), [0, 0])
sine, product = both_p.bind(x, x + 1)
assert np.allclose(sine, np.sin(x)) and np.allclose(product, x * (x + 1))
assert np.allclose(jax.jit(lambda x: both_p.bind(x, x + 1)[0])(x), np.sin(x))
assert np.allclose(jax.grad(lambda x: both_p.bind(x, jnp.ones(4))[0].sum())(x), np.cos(x))

traced_p = Primitive("scale")  # a name that is taken
traced_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(traced_p, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
assert jax.jit(traced_p.bind)(x).tolist() == [1.0, 2.0, 3.0, 4.0]
ad.defjvp(traced_p, lambda t, x: 5 * t)
assert jax.jit(jax.grad(lambda x: traced_p.bind(x)))(1.0) == 5.0

seen = []
axis_p = Primitive("axis")
axis_p.def_impl(lambda x: x)
axis_p.def_abstract_eval(lambda x: x)


def axis_batcher(size, name, main, vals, dims):
    seen.append((size, name))
    return axis_p.bind(*vals), dims[0]


batching.axis_primitive_batchers[axis_p] = axis_batcher
jax.vmap(axis_p.bind, axis_name="i")(x)
assert seen == [(4, "i")]
effect_p = Primitive("effect")
effect_p.def_effectful_abstract_eval(lambda x: (x, {"something"}))
assert jax.make_jaxpr(lambda x: effect_p.bind(x))(1.0).effects

# -- programs as data ------------------------------------------------------------------------------------------------
closed = jax.make_jaxpr(jax.jit(lambda x: x + 1.0))(1.0)
(equation,) = closed.eqns
inner = equation.params["jaxpr"]
assert equation.primitive is jit_p and isinstance(inner, ClosedJaxpr) and inner.eqns[0].primitive is add_p
assert isinstance(inner.jaxpr, Jaxpr) and isinstance(inner.eqns[0].invars[0], Var)
assert isinstance(inner.eqns[0].invars[1], Literal) and closed.literals == closed.consts
assert jaxpr_as_fun(closed)(jnp.float32(1.0)) == jax.core.eval_jaxpr(closed.jaxpr, (), jnp.float32(1.0)) == [2.0]
jaxpr, used = pe.dce_jaxpr(jax.make_jaxpr(lambda x, y: (x + 1, y + 1))(1.0, 2.0).jaxpr, [True, False])
assert len(jaxpr.eqns) == 1 and used == [True, False]
wrapped = lu.wrap_init(lambda x, y: [x * y, x + 1])
unknown = pe.PartialVal.unknown(jax.core.ShapedArray((), jnp.float32))
jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(wrapped, [pe.PartialVal.known(jnp.float32(2.0)), unknown])
assert [out.is_known() for out in outs] == [False, True] and outs[1].get_known() == 3.0
jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(wrapped, [x[0].aval, x[0].aval])
assert len(jaxpr.eqns) == 2 and len(avals) == 2


@lu.transformation_with_aux
def counted(*args):
    out = yield args, {}
    yield out, len(out)


fun, count = counted(wrapped)
assert fun.call_wrapped(2.0, 3.0) == [6.0, 3.0] and count() == 2
flat, out_tree = jax.api_util.flatten_fun(lu.wrap_init(lambda a, b: {"s": a + b}), jax.tree.structure(((1, 2), {})))
assert flat.call_wrapped(1, 2) == [3] and out_tree() == jax.tree.structure({"s": 0})


# -- a trace of the library's own -----------------------------------------------------------------------------------
class Counting(jax.core.Trace):
    def __init__(self, parent):
        super().__init__()
        self.parent_trace = parent
        self.names = []

    def process_primitive(self, primitive, args, params):
        self.names.append(primitive.name)
        values = [x.value if isinstance(x, Counted) else x for x in args]
        out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
        return [Counted(self, o) for o in out] if primitive.multiple_results else Counted(self, out)


class Counted(jax.core.Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace = trace
        self.value = value

    @property
    def aval(self):
        return jax.typeof(self.value)


with jax.extend.core.take_current_trace() as parent:
    trace = Counting(parent)
    with jax.extend.core.set_current_trace(trace):
        out = jnp.sin(Counted(trace, x)) + 1.0
assert trace.names[0] == "sin" and np.allclose(out.value, np.sin(x) + 1)


weak = jnp.where(True, 1, -1)
called = lambda: jax.pure_callback(lambda: np.int32(2), jax.eval_shape(lambda: weak))
chosen = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, called, lambda: weak))(x)
assert chosen == 2 and chosen.weak_type

# -- structures ------------------------------------------------------------------------------------------------------


@jtu.register_dataclass
@dataclasses.dataclass
class Point:
    x: object
    y: object
    name: str = dataclasses.field(default="p", metadata={"static": True})


ordered = collections.OrderedDict(b=Point(1, [2]), a=collections.defaultdict(list, d=3, c=None))
leaves, structure = jtu.tree_flatten(ordered)
assert leaves == [1, 2, 3] and jax.tree.unflatten(structure, leaves) == ordered and hash(structure) is not None
assert (
    isinstance(structure, jtu.PyTreeDef) and str(jax.tree.structure({"a": (0, None)})) == "PyTreeDef({'a': (*, None)})"
)
assert pickle.loads(pickle.dumps(jax.tree.structure([0, {"a": 1}]))) == jax.tree.structure([0, {"a": 1}])
assert structure == jtu.tree_structure(ordered) != jtu.tree_structure({**ordered})
paths = [path for path, _ in jtu.tree_leaves_with_path(ordered)]
assert paths[:2] == [
    (jtu.DictKey("b"), jtu.GetAttrKey("x")),
    (jtu.DictKey("b"), jtu.GetAttrKey("y"), jtu.SequenceKey(0)),
]
assert [jtu.keystr(path) for path in paths] == ["['b'].x", "['b'].y[0]", "['a']['d']"]
assert jtu.keystr(paths[1], simple=True, separator="/") == "b/y/0"
assert jtu.treedef_children(jtu.treedef_tuple([structure])) == [structure] and jtu.is_tree_node(Point)
assert jax.tree.map(lambda x, y: (x, y), Point(1, 2), Point(3, [4])) == Point((1, 3), (2, [4]))
assert jtu.tree_map_with_path(lambda path, x, y: (len(path), x, y), [1], [{}]) == [(1, 1, {})]
assert jax.tree.map(f=abs, tree=[-1]) == jax.tree.map_with_path(lambda _, x: abs(x), tree=[-1]) == [1]
for mapped in (jax.tree.map, lambda f, *trees: jtu.tree_map_with_path(lambda path, *xs: f(*xs), *trees)):
    try:
        mapped(lambda x, y: x, {"a": Point(1, 2)}, {"a": [1, 2]})
        raise AssertionError
    except ValueError as error:
        assert "at ['a']: " in str(error), error
assert jax.tree.flatten([Point(1, 2), 3], lambda x: type(x) is Point)[0] == [Point(1, 2), 3]
assert jtu.tree_leaves_with_path([1, [2]], lambda path, x: len(path) == 1, is_leaf_takes_path=True)[1][1] == [2]
assert jax.tree.reduce(lambda a, b: a + b, [1, (2, 3)]) == 6 and jax.tree.all((True, [])) and not jax.tree.all([0])
# A module of corejax that is imported later registers its types with jaxlib as well.
from jax.experimental import sparse  # only now

assert len(jax.tree.leaves(sparse.BCOO.fromdense(jnp.eye(2)))) == 2

# -- references ------------------------------------------------------------------------------------------------------
assert jax.tree.leaves({"a": x})[0] is x and not jax.tree_util.tree_leaves([None])
ref = jax.new_ref(x)
assert isinstance(jax.typeof(ref), AbstractRef) and jax.typeof(x).shape == x.shape
assert jax.tree.leaves([ref, x])[0] is ref and jax.tree_util.tree_structure([ref]) == jax.tree.structure([0])
assert jax.tree.map(lambda r: r[...].tolist(), {"a": ref, "b": (ref,)}) == {"a": x.tolist(), "b": (x.tolist(),)}
assert jax.tree.flatten((ref, [ref]), lambda node: type(node) is list)[0][0] is ref
assert jax.tree.reduce(lambda total, r: total + r[...].sum(), [ref, ref], 0.0) == 2 * x.sum()
assert [path for path, _ in jax.tree_util.tree_leaves_with_path({"a": ref})] == [(jax.tree_util.DictKey("a"),)]
jax.jit(lambda refs: refs[0].__setitem__(..., 2.0 * refs[0][...]))([ref])
assert (ref[...] == 2 * x).all()


# -- objects that stand for arrays; names that are missing ----------------------------------------------------------
class Held:
    def __jax_array__(self):
        return x


assert (jnp.sin(Held()) == jnp.sin(x)).all() and jax.jit(lambda: jax.lax.add(Held(), x))().tolist() == (x + x).tolist()
assert jax.core.ShapedArray((2,), jnp.int32, sharding=None).to_tangent_aval().dtype == jax.dtypes.float0
assert jax.lax.scan(lambda c, x: (c + x, c), 0.0, x, _split_transpose=True)[0] == 6.0
calls = []
dot = lambda *args, **kwargs: (calls.append(1), jax.lax.dot_general(*args, **kwargs))[1]
assert jnp.einsum("i,i->", x, x, _dot_general=dot) == 14.0 and calls
for statement, error, text in (
    ("jax.core.no_such", AttributeError, "'jax.core' has no attribute 'no_such': jax is corejax here"),
    ("jax.core.ShapedArra", AttributeError, "did you mean 'ShapedArray'"),
    ("from jax.core import no_such", ImportError, "has no attribute 'no_such'"),
    ("import jax.no_such.module", ModuleNotFoundError, "no module named 'jax.no_such'"),
    ("from jax._src import no_such", ImportError, "which a_library asks for"),
):
    try:
        exec(statement, {"jax": jax, "__name__": "a_library.inner" if "_src" in statement else "__main__"})
    except error as found:
        assert text in str(found), (statement, found)
    else:
        raise AssertionError(statement)
if "--subprocess" in sys.argv:  # by PYTHONPATH
    code = "import jax; assert jax.__corejax__"
    subprocess.run([sys.executable, "-c", code], check=True)
print("done")
