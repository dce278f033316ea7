"""What the plugin contributes. Discovery imports this module, so it imports the rest only inside its hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.extend import Example, Primitive, hookimpl


@hookimpl
def corejax_register_primitives() -> None:
    """Import every module that defines primitives."""
    from corejax_lax_basic.lax import _import_all

    _import_all()


@hookimpl
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Translations live apart: nothing needs them until something is compiled."""
    if kind == "xla_translation":
        from corejax_lax_basic import translations

        if primitive is None:
            corejax_register_primitives()  # of tables: each row is translated
        translations.load(primitive)


@hookimpl
def corejax_export_names() -> Mapping[str, str]:
    """The context manager for a setting."""
    return {"default_matmul_precision": "corejax_lax_basic.linear.precision:default_matmul_precision"}


@hookimpl
def corejax_export_namespaces() -> Mapping[str, str]:
    """`corejax.lax`."""
    return {"lax": "corejax_lax_basic.lax"}


@hookimpl
def corejax_provide_array_methods() -> Mapping[str, str]:
    """Operators, indexing and methods of arrays and tracers."""
    from corejax_lax_basic.arrays import METHODS

    return METHODS


@hookimpl
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:
    """The structural operations that interpreters need."""
    from corejax_lax_basic.structural_operations import OPERATIONS

    return OPERATIONS


@hookimpl
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Data that nothing imports unless somebody checks the rules."""
    from corejax_lax_basic.examples import examples_of

    return examples_of(primitive)
