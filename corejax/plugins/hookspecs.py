"""The hooks of plugin API version 1, by which a plugin contributes.

Each hook is an empty function; its docstring is the contract. A plugin implements any of them with `hookimpl`, with any
subset of the arguments, so a new argument breaks no plugin. If a plugin raises in a hook, all its registrations are
undone and it contributes nothing. The hooks of each plugin are called separately (`_hooks.py`), so the first result is
the only one.

If a hook or an argument is renamed, the old name stays here while it is deprecated, with `@hookspec(warn_on_impl=...)`
or `@hookspec(warn_on_impl_args={"old": CorejaxDeprecationWarning("...")})`, and its caller passes both.
"""

# mypy: disable-error-code="empty-body"
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
def corejax_declare_api_version() -> int:
    """Return the plugin API version that the plugin was made for. Called once, before any other hook; default 1."""


@hookspec(firstresult=True)
def corejax_register_primitives() -> None:
    """Import the modules that define the plugin's primitives with their rules.

    Called once, when all primitives are needed (`corejax list-primitives`, the jaxpr parser), after the exports and
    array methods of every plugin are registered.
    """


@hookspec(firstresult=True)
def corejax_register_rules(kind: str, primitive: Primitive | None) -> None:
    """Import the modules with rules of one kind that are not imported with the primitives.

    Args:
        kind: name of the registry, such as `"xla_translation"`.
        primitive: a primitive of the plugin without a rule of this kind; None asks for the rules of all primitives. A
            plugin with this argument promises that its late rules are for its own primitives only.

    Called when a rule of that kind is missing: once for each kind, or once for each primitive of the plugin if the hook
    takes `primitive`. If it raises, its registrations are undone, the fault is recorded (`corejax plugins`), and the
    plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_declare_rule_kinds() -> Mapping[str, str]:
    """Return the plugin's own rule kinds: `{"interval": "acme_corejax.interpreter:interval_rules"}`.

    Each entry names a module and the `RuleRegistry` of that kind in it, best the module of the interpreter. Called when
    the plugin is loaded. The module is imported when all rule kinds are needed (`corejax list-primitives`, `corejax
    show`), unless a use of the transformation imports it earlier.

    Rules of the kind are found like those of any other: `corejax_register_rules` of every plugin is called for a
    missing rule, which is then derived if it is still missing. If the module cannot be imported, the fault is recorded
    and the plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_export_names() -> Mapping[str, str]:
    """Return names for the facade: `{"jit": "acme_corejax.api:jit"}` makes `corejax.jit`, imported at first use."""


@hookspec(firstresult=True)
def corejax_export_namespaces() -> Mapping[str, str]:
    """Return modules for the facade: `{"lax": "acme_corejax.lax"}` makes `corejax.lax`, imported at first use."""


@hookspec(firstresult=True)
def corejax_provide_array_methods() -> Mapping[str, Any]:
    """Return operators, methods and properties of arrays and tracers, by name. Called when the plugin is loaded.

    Each is a function or a property, or a place, `"acme_corejax.methods:cubed"`, from which it is imported at first
    use. Several names may share a place if the object there is a mapping from these names to functions.
    """


@hookspec(firstresult=True)
def corejax_provide_operations() -> Mapping[str, Callable[..., Any]]:
    """Return structural operations that interpreters need, by name (`corejax.arrays.structural`)."""


@hookspec(firstresult=True)
def corejax_declare_settings() -> Mapping[str, tuple[Any, ...]]:
    """Return settings, name -> (default, parser). Each becomes an attribute of `corejax.config`.

    True as third element means that traces depend on the setting; they are then cached for each of its values.
    """


@hookspec(firstresult=True)
def corejax_provide_backends() -> Mapping[str, str]:
    """Return backends: `{"acme": "acme_corejax.backend:BACKEND"}` makes `jit(f, backend="acme")`.

    Each entry names a module and the `corejax.extend.Backend` in it. Called when the plugin is loaded; the module is
    imported when a program is first compiled for the backend. If it cannot be imported, the fault is recorded
    (`corejax plugins`), and the plugin's other contributions stay.
    """


@hookspec(firstresult=True)
def corejax_provide_examples(primitive: str) -> Sequence[Example]:
    """Return example applications of a primitive of the plugin, on which its rules are checked (`corejax verify`).

    Args:
        primitive: name of the primitive. Return None or an empty list for a primitive without examples.

    Called only for checks, so the examples may live in a module that no other module imports.
    """


@hookspec(firstresult=True)
def corejax_provide_checks() -> Mapping[str, str]:
    """Return checks of the plugin's own rule kinds: `{"interval": "acme_corejax.checks:INTERVAL"}`.

    Each entry names a module and the `corejax_testing.Check` in it. `corejax verify` runs the check on every primitive,
    and its report has a column of that name. The hook is called and the module imported only when rules are checked, so
    the module may import corejax_testing.
    """


@hookspec(firstresult=True)
def corejax_add_cli_commands(group: object) -> None:
    """Add commands to the `corejax` command. Called for `corejax --help` and for commands that are not built in.

    Args:
        group: the click group; it refuses names that are taken.
    """
