"""The hooks of plugin API version 1: what a plugin may contribute.

Each hook is an empty function; its docstring is the contract. A plugin implements any of them with `hookimpl`,
with any subset of the arguments, so arguments can be added without breaking anybody. A plugin that raises in a hook
contributes nothing: what it had registered is taken back. Each plugin's hooks are called by themselves (`_hooks.py`):
the first result is the only one.

A hook or an argument that is renamed stays here while it is deprecated, with `@hookspec(warn_on_impl=...)` or
`@hookspec(warn_on_impl_args={"old": CorejaxDeprecationWarning("...")})`, and its caller passes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from corejax.core.primitive import Primitive
    from corejax.plugins._example import Example

API_VERSION = 1

hookimpl = pluggy.HookimplMarker("corejax")
hookspec = pluggy.HookspecMarker("corejax")


@hookspec(firstresult=True)
def corejax_declare_api_version() -> int:  # type: ignore[empty-body]
    """The plugin API version that the plugin was made for. Called once, before any other hook; default 1."""


@hookspec(firstresult=True)
def corejax_register_primitives() -> None:
    """Import the modules that define the plugin's primitives with their rules.

    Called once, when something asks for all primitives (`corejax list-primitives`, the jaxpr parser), after every
    plugin's exports and array methods are there.
    """


@hookspec(firstresult=True)
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Import the modules that hold rules of one kind which are not imported with the primitives.

    Args:
        kind: name of the registry, `"xla_translation"` say.
        primitive: one of the plugin's own whose rule is missing; None asks for all. A plugin that takes this argument
            says that its late rules of all kinds are its own primitives', and may leave those of others for later.

    Called when a rule of that kind is missing: once for each kind, or for each primitive of the plugin where it takes
    the argument. Where it raises, what it registered is taken back, the fault is recorded (`corejax plugins`), and the
    plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_declare_rule_kinds() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Rule kinds of the plugin's own: `{"interval": "acme_corejax.interpreter:interval_rules"}`.

    Each names a module and the `RuleRegistry` of that kind in it. Called when the plugin is loaded; the module is
    imported when somebody asks for every rule kind (`corejax list-primitives`, `corejax show`), or earlier by
    whoever uses the transformation. It is best the module of the interpreter.

    Rules of the kind are found like any others: what is missing is asked of every plugin's `corejax_register_rules`,
    then derived. Where the module cannot be imported, the fault is recorded and the plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_export_names() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Names for the facade: `{"jit": "acme_corejax.api:jit"}` makes `corejax.jit`. Imported at first use."""


@hookspec(firstresult=True)
def corejax_export_namespaces() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Modules for the facade: `{"lax": "acme_corejax.lax"}` makes `corejax.lax`. Imported at first use."""


@hookspec(firstresult=True)
def corejax_provide_array_methods() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Operators, methods and properties of arrays and tracers, by name. Called when the plugin is loaded.

    Each is a function or a property, or its place, `"acme_corejax.methods:cubed"`, from where it is imported when it is
    first used. A mapping may be at the place that has several under their names.
    """


@hookspec(firstresult=True)
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]
    """Structural operations that interpreters need, by name (`corejax.core.structural`)."""


@hookspec(firstresult=True)
def corejax_declare_settings() -> Mapping[str, tuple[Any, ...]]:  # type: ignore[empty-body]
    """Settings: name -> (default, parser). Each becomes an attribute of `corejax.config`.

    With True as third element traces depend on it: what is traced and compiled is kept for each of its values.
    """


@hookspec(firstresult=True)
def corejax_provide_backends() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Backends: `{"acme": "acme_corejax.backend:BACKEND"}` makes `jit(f, backend="acme")`.

    Each names a module and the `corejax.extend.Backend` in it. Called when the plugin is loaded; the module is imported
    when something is first compiled for it. Where it cannot be imported, the fault is recorded (`corejax plugins`), and
    the plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_provide_examples(primitive: str) -> Sequence[Example]:  # type: ignore[empty-body]
    """Applications of one of the plugin's primitives, which its rules are checked on (`corejax verify`).

    Args:
        primitive: its name; None or an empty list where the plugin has nothing to say about it.

    Called when somebody asks; the examples may live in a module that nothing else imports.
    """


@hookspec(firstresult=True)
def corejax_provide_checks() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Checks of rules of the plugin's own kind: `{"interval": "acme_corejax.checks:INTERVAL"}`.

    Each names a module and the `corejax_testing.Check` in it. `corejax verify` then runs it on every primitive, with a
    column of that name in its report. Called when somebody checks rules; the module is imported then, and only then, so
    it may import corejax_testing.
    """


@hookspec(firstresult=True)
def corejax_add_cli_commands(group: Any) -> None:
    """Add commands to the `corejax` command. Called for `corejax --help` and for commands that are not built in.

    Args:
        group: the click group; it refuses names that are taken.
    """
