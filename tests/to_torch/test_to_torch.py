"""corejax in PyTorch, as operations and as kernels: results and derivatives are those of torch's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cnp
from corejax import lax
from corejax.errors import UnboundAxisError
from corejax.extend import Primitive, find_primitive, jvp_rules, vmap_rules, xla_translations

torch = pytest.importorskip("torch")
pytest.importorskip("corejax_to_torch")


# torch.func imports functions that torch.jit compiles, and torch.export asks for leaves; both ways are deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

func = torch.func
X = torch.linspace(0.3, 1.2, 4)

FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "a primitive": (lambda: find_primitive("sin"), torch.sin),
    "several operations": (lambda: lambda x: cnp.sinc(x) * lax.erf(x), lambda x: torch.sinc(x) * torch.erf(x)),
    "linear algebra": (lambda: lambda x: cnp.linalg.cholesky(cnp.outer(x, x) + cnp.eye(4)),
                       lambda x: torch.linalg.cholesky(torch.outer(x, x) + torch.eye(4))),
    "a matrix product": (lambda: lambda x: 2 * cnp.outer(x, x) @ cnp.outer(x, x + 1),
                         lambda x: 2 * torch.outer(x, x) @ torch.outer(x, x + 1)),
    "an impl alone": (lambda: square_p(), torch.square),
    "a constant array": (lambda: lambda x: x**2 * np.arange(4, dtype=np.float32), lambda x: x**2 * torch.arange(4)),
    "a constant without a derivative": (lambda: lambda x: lax.zeta(lax.full(x.shape, 3.0, x.dtype), x),
                                        lambda x: torch.special.polygamma(2, x) / -2),
}  # fmt: skip


def square_p() -> Primitive:
    """A primitive with an impl alone, and a JVP rule."""
    p = find_primitive("to_torch_tests.square")
    if p is None:
        p = Primitive("to_torch_tests.square", impl=lambda x: np.square(x), abstract_eval=lambda x: x.strip_weak_type())
        jvp_rules.register(p, lambda primals, tangents: (p.bind(*primals), 2 * primals[0] * tangents[0]))
        vmap_rules.register(p, lambda size, vals, dims: (p.bind(*vals), dims[0]))
        xla_translations.register(p, by="host callback")
    return p


def _backward_three_times(f: Any) -> Any:
    def derivative(x: Any) -> Any:
        x = x.clone().requires_grad_()
        found = f(x).sum()
        for _ in range(3):
            (found,) = torch.autograd.grad((found**2).sum(), x, create_graph=True)
        return found.detach()

    return derivative


def _compiled(f: Any) -> Any:
    return torch.compile(f, fullgraph=True, backend="aot_eager")


def _compiled_backward(f: Any) -> Any:
    def derivative(x: Any) -> Any:
        torch.compiler.reset()
        x = x.clone().requires_grad_()
        _compiled(f)(x).sum().backward()
        return x.grad

    return derivative


def _exported(f: Any) -> Any:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return f(x)

    return torch.export.export(Module(), (X,)).run_decompositions().module()


TRANSFORMATIONS: dict[str, Any] = {
    "eager": lambda f: f,
    "backward three times": _backward_three_times,
    "vmap of grad": lambda f: lambda x: func.vmap(func.grad(lambda y: f(y).sum()))(torch.stack([x, 2 * x])),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "hessian": lambda f: func.hessian(lambda x: (f(x) ** 2).sum()),
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f)),
    "compiled": lambda f: _compiled(f),
    "compiled, backward": _compiled_backward,
    "compiled vmap": lambda f: lambda x: _compiled(func.vmap(f))(x[None]),
    "compiled vmap of grad": lambda f: lambda x: _compiled(func.vmap(func.grad(lambda y: f(y).sum())))(x[None]),
    "compiled jvp": lambda f: _compiled(lambda x: func.jvp(f, (x,), (x,))[1]),
    "compiled grad of jvp": lambda f: _compiled(func.grad(lambda x: (func.jvp(f, (x,), (x,))[1] ** 2).sum())),
    "compiled hessian": lambda f: _compiled(func.hessian(lambda x: (f(x) ** 2).sum())),
    "compiled grad, backward": lambda f: _compiled_backward(func.grad(lambda x: f(x).sum())),
    "exported": _exported,
    "jvp of exported": lambda f: lambda x: func.jvp(_exported(f), (x,), (x,))[1],
}


@pytest.fixture(autouse=True)
def compile_anew() -> None:
    torch.compiler.reset()


@pytest.mark.parametrize("as_kernel", [False, True])
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations_of_torch(name: str, transformation: str, as_kernel: bool) -> None:
    make, theirs = FUNCTIONS[name]
    transform = TRANSFORMATIONS[transformation]
    got, wanted = transform(corejax.to_torch(make(), as_kernel=as_kernel))(X), transform(theirs)(X)
    torch.testing.assert_close(got, wanted, rtol=2e-4, atol=2e-4)


CONSTANTS = {
    "an array": np.arange(4, dtype=np.float32),
    "a complex array": np.arange(4, dtype=np.complex64) * (1 + 2j),
    "bfloat16": np.asarray(cnp.arange(4, dtype=cnp.bfloat16)),
    "a complex number": 2 + 3j,
    "a complex number that is not finite": complex(np.nan, np.inf),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_exported_programs(name: str) -> None:
    f = corejax.to_torch(lambda x: x + CONSTANTS[name])
    wanted = f(X)
    for transform in (_exported, _compiled):
        torch.testing.assert_close(transform(f)(X), wanted, equal_nan=True)


@pytest.mark.parametrize("as_kernel", [False, True])
def test_complex_gradients_are_conjugated(as_kernel: bool) -> None:
    z = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)

    def gradient(f: Any) -> Any:
        (found,) = torch.autograd.grad((f(z) * (2 - 1j)).imag.sum(), z, create_graph=True)
        return found, torch.autograd.grad(found.abs().sum(), z)[0]

    got, wanted = gradient(corejax.to_torch(cnp.exp, as_kernel=as_kernel)), gradient(torch.exp)
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def test_the_forward_is_not_computed_again() -> None:
    calls = []
    p = Primitive(
        "to_torch_tests.counted",
        impl=lambda x: calls.append(1) or np.exp(x),
        abstract_eval=lambda x: x.strip_weak_type(),
    )
    jvp_rules.register(p, lambda primals, tangents: (out := p.bind(*primals), out * tangents[0]))
    xla_translations.register(p, by="host callback")
    x = X.clone().requires_grad_()
    corejax.to_torch(p)(x).sum().backward()
    torch.testing.assert_close(x.grad, X.exp())
    assert len(calls) == 1


@pytest.mark.parametrize("compiles", [False, True])
def test_the_residuals_of_a_kernel_are_outputs(compiles: bool) -> None:
    calls = []
    name = f"to_torch_tests.counted_{compiles}"
    p = Primitive(name, impl=lambda x: calls.append(1) or np.exp(x), abstract_eval=lambda x: x.strip_weak_type())
    jvp_rules.register(p, lambda primals, tangents: (out := p.bind(*primals), cnp.sin(out) * tangents[0]))
    xla_translations.register(p, by="host callback")
    f = corejax.to_torch(lambda x: 2 * p.bind(x), as_kernel=True)
    f = torch.compile(f, fullgraph=True, backend="aot_eager") if compiles else f
    x = X.clone().requires_grad_()
    f(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * torch.sin(X.exp()))
    assert len(calls) == 1


def test_the_results_of_a_kernel_have_memory_of_their_own() -> None:
    constant = cnp.array([1.0, 2.0])
    f = corejax.to_torch(lambda x: (x, x, constant, constant, x + 1), as_kernel=True)
    x = torch.ones(2)
    outs = f(x)
    assert len({y.data_ptr() for y in (x, *outs)}) == 6
    for y in outs:
        y.add_(1)
    torch.testing.assert_close(f(x)[2], torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("as_kernel", [False, True])
def test_structures_and_several_results(as_kernel: bool) -> None:
    both = corejax.to_torch(lambda x: {"a": cnp.sort(x), "b": (cnp.argmax(x), x)}, as_kernel=as_kernel)
    for f in (both, torch.compile(both, fullgraph=True, backend="aot_eager")):
        found = f(X)
        assert found["b"][0].dtype == torch.int32 and int(found["b"][0]) == 3
        assert found["b"][1].data_ptr() != X.data_ptr()


@pytest.mark.parametrize("as_kernel", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int8", "uint32", "bool", "complex64"])
def test_dtypes_and_layouts(dtype: str, as_kernel: bool) -> None:
    f = corejax.to_torch(lambda x: cnp.where(x, x, x), as_kernel=as_kernel)
    base = torch.tensor([[0, 1, 2], [2, 1, 0]]).to(getattr(torch, dtype))
    for x in (base, base.t(), base[:, ::2], base[0, 0], base[:0]):
        torch.testing.assert_close(f(x), x)
        assert f(x).dtype == x.dtype


def test_a_kernel_copies_nothing() -> None:
    from corejax_to_torch.tensors import to_array

    assert to_array(X).ctypes.data == X.data_ptr()


@pytest.mark.parametrize("as_kernel", [False, True])
def test_meta_tensors(as_kernel: bool) -> None:
    out = corejax.to_torch(cnp.sinc, as_kernel=as_kernel)(torch.empty(3, 2, device="meta"))
    assert (out.shape, out.device.type) == ((3, 2), "meta")


def test_a_module_of_torch_nn() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 2), corejax.to_torch(cnp.tanh).as_module())
    model(X).sum().backward()
    assert model[0].weight.grad.shape == (2, 4)


def test_opcheck() -> None:
    from corejax.extend import stage_closed
    from corejax_to_torch.keys import key_of
    from corejax_to_torch.tensors import aval_of

    key = key_of(stage_closed(lambda x: [cnp.sinc(x)], [aval_of(X, "sinc")]))
    found = torch.library.opcheck(torch.ops.corejax.call, ([X.clone().requires_grad_()], key))
    assert set(found.values()) == {"SUCCESS"}


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    def noisy(x: Any) -> Any:
        corejax.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match=r"to_torch: noisy has effects .* move them out of it"):
        corejax.to_torch(noisy)(X)
    with pytest.raises(TypeError, match=r"to_torch: sin: an argument is 1.0 of type float; pass tensors"):
        corejax.to_torch(find_primitive("sin"))(1.0)
    with pytest.raises(TypeError, match=r"an argument is a tensor of torch.float8_e5m2"):
        corejax.to_torch(find_primitive("sin"))(X.to(torch.float8_e5m2))


@pytest.mark.parametrize("as_kernel", [False, True])
def test_errors_of_corejax_name_the_primitive(as_kernel: bool) -> None:
    p = Primitive(f"to_torch_tests.picky_{as_kernel}", abstract_eval=lambda x: float("no float"))
    _compiled(lambda x: x + 1)(X)  # Dynamo's frames are between those of corejax from then on
    with pytest.raises(ValueError, match=r"^to_torch_tests_picky_\w+: could not convert"):
        corejax.to_torch(p, as_kernel=as_kernel)(X)


@pytest.mark.parametrize("as_kernel", [False, True])
def test_other_sizes_are_compiled_again(as_kernel: bool) -> None:
    f = corejax.to_torch(lambda x: cnp.sort(x) + 1, as_kernel=as_kernel)
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for size in (3, 4, 5):
        torch.testing.assert_close(compiled(X[:size]), X[:size].sort()[0] + 1)


@pytest.mark.parametrize("as_kernel", [False, True])
def test_sparse_tensors_are_refused(as_kernel: bool) -> None:
    f = corejax.to_torch(cnp.sinc, as_kernel=as_kernel)
    f(torch.eye(3))  # a dense tensor of the same type
    with pytest.raises(TypeError, match=r"^to_torch: sinc: a tensor has the layout torch.sparse_coo, .*to_dense"):
        f(torch.eye(3).to_sparse())


def test_axes_without_a_name_are_refused() -> None:
    def summed(x: Any) -> Any:
        return lax.psum(x, "i")

    with pytest.raises(
        UnboundAxisError, match=r"^to_torch: summed has a collective .*\(psum: no axis is named 'i'\); call torch"
    ):
        corejax.to_torch(summed)(torch.ones(2))
    assert corejax.to_torch(corejax.vmap(summed, axis_name="i"))(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(NameError, match=r"^name 'axis' is not defined"):
        corejax.to_torch(lambda x: axis)(torch.ones(2))  # type: ignore[name-defined]  # noqa: F821  # misspelt


def test_another_device_is_refused() -> None:
    from types import SimpleNamespace

    from corejax.extend import stage_closed
    from corejax_to_torch.kernel import run
    from corejax_to_torch.tensors import aval_of

    closed = stage_closed(lambda x: [cnp.sin(x)], [aval_of(X, "sin")])
    elsewhere = SimpleNamespace(is_cpu=False, is_meta=False, device="cuda:0", layout=torch.strided)
    with pytest.raises(NotImplementedError, match=r"to_torch: sin is a kernel .* got one on cuda:0; .* Tensor.cpu"):
        run(closed, [elsewhere])


@pytest.mark.parametrize("as_kernel", [False, True])
def test_symbolic_sizes_are_refused(as_kernel: bool) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return sin(x)

    sin = corejax.to_torch(find_primitive("sin"), as_kernel=as_kernel)
    with pytest.raises(Exception, match=r"to_torch: sin.* symbolic shape .*; export it for known sizes"):
        torch.export.export(Module(), (X,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})


def test_an_integer_that_requires_grad_is_refused_by_torch() -> None:
    f = corejax.to_torch(find_primitive("neg"), as_kernel=True)
    with pytest.raises(RuntimeError, match="floating point"):
        func.grad(lambda x: f(x).sum())(torch.arange(3))


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    with pytest.raises(ImportError, match=r"to_torch: sin: torch 2.99.0 is not supported; install torch>=2.13"):
        corejax.to_torch(find_primitive("sin"))


@pytest.mark.parametrize("as_kernel", [False, True])
def test_a_graph_break_does_not_let_dynamo_compile_corejax(as_kernel: bool) -> None:
    f = corejax.to_torch(lambda x: cnp.sinc(x) * lax.erf(x), as_kernel=as_kernel)

    def broken(x: Any) -> Any:
        torch._dynamo.graph_break()
        return func.hessian(lambda y: f(y).sum())(x) + func.jvp(f, (x,), (x,))[1]

    assert torch.allclose(torch.compile(broken, backend="aot_eager")(X), broken(X))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # Dynamo reads it of what it wraps
def test_dynamo_does_not_compile_the_backward() -> None:
    x = X.clone().requires_grad_()
    y = corejax.to_torch(cnp.sinc, as_kernel=True)(x).sum()

    def backward(x: Any) -> Any:
        return run(x)

    @torch.compiler.disable(recursive=False)
    def run(x: Any) -> Any:
        return torch.autograd.grad(y, x)[0]

    got = torch.compile(backward, backend="aot_eager")(x)
    assert torch.allclose(got, func.grad(lambda x: torch.sinc(x).sum())(X))
