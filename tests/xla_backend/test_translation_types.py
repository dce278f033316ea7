"""The types that authors annotate translation rules with are what the backend hands them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from corejax.extend.devices import TranslationContext, TranslationValue
from corejax_xla_backend._lowering.context import TranslationContext as Context
from corejax_xla_backend._lowering.module import ModuleBuilder
from corejax_xla_backend._lowering.types import Value

METHODS = [name for name, f in vars(TranslationContext).items() if inspect.isfunction(f) and not name.startswith("_")]


def _parameters(fn: object) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(fn).parameters.values()]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", METHODS)
def test_builder_has_the_method_as_promised(name: str) -> None:
    promised, given = getattr(TranslationContext, name), inspect.getattr_static(Context, name)
    if isinstance(given, staticmethod):
        assert _parameters(promised)[1:] == _parameters(given.__func__)
    else:
        assert _parameters(promised) == _parameters(given)
    assert inspect.getdoc(promised)


def test_attributes() -> None:
    ctx = Context(ModuleBuilder("cpu"))
    assert set(TranslationContext.__annotations__) == {"module", "platform"}
    assert ctx.platform == "cpu"
    assert set(TranslationValue.__annotations__) <= set(Value.__slots__)


def test_types_come_without_jaxlib() -> None:
    heavy = "{'jaxlib', 'corejax_xla_backend'}"
    code = f"import sys, corejax.extend.devices as e; e.TranslationContext; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
