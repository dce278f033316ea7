"""Derive the names in a new distribution from one name, and check them."""

from __future__ import annotations

import builtins
import datetime
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_AUTHOR = re.compile(r"\s*(?P<name>[^<>]*[^<>\s])\s*(<(?P<email>[^<>@\s]+@[^<>@\s]+)>)?\s*")


class Kind(NamedTuple):
    """A kind of example that a new distribution starts from.

    Attributes:
        directory: the directory of its templates.
        name: the default name of the function, of its module, and of the primitive after the dot.
        summary: a one-line description, with `{name}` for the name.
    """

    directory: str
    name: str
    summary: str


KINDS = {
    "elementwise": Kind("elementwise", "softsign", "{name}(x) = x / (1 + |x|)"),
    "higher-order": Kind("higher_order", "named_call", "Calls of functions as one equation that has a name"),
    "impl-only": Kind("impl_only", "running_max", "The largest number so far along an axis"),
}
# corejax's own distributions, without the `corejax-`.
_OURS = (
    "as-jax",
    "checkify",
    "checkpoints",
    "control-flow",
    "eager",
    "explain",
    "fft",
    "jet",
    "lax-basic",
    "libraries",
    "linalg",
    "numpy",
    "parallel",
    "random",
    "scipy",
    "sparse",
    "state",
    "testing",
    "to-jax",
    "to-torch",
    "xla-backend",
)
_MODULES = ("plugin", "examples", "translations")  # the other modules of the package

# Option -> SPDX expression.
LICENSES = {"apache-2.0": "Apache-2.0", "mit": "MIT", "bsd-3-clause": "BSD-3-Clause", "none": None}


@dataclass(frozen=True)
class Plan:
    """The names and options of a new distribution.

    Attributes:
        plugin: name of the entry point and prefix of the primitive's name ("acme_special").
        namespace: users find the plugin as `corejax.<namespace>`.
        function: name of the public function, of its module, and of the primitive after the dot.
        kind: key of `KINDS`.
        license: key of `LICENSES`.
        author: "Name" or "Name <mail>".
    """

    plugin: str
    namespace: str
    function: str
    kind: str = "elementwise"
    license: str = "apache-2.0"
    author: str | None = None

    @classmethod
    def of(cls, name: str, namespace: str | None, taken: Mapping[str, str], **options: str | None) -> Plan:
        """Return a plan with names that are valid for distributions, modules and entry points.

        Args:
            name: the user's name for the plugin, with dashes or underscores, with or without `corejax-`.
            namespace: the name in the facade; None for the plugin's name.
            taken: names of the facade that are taken -> owner.
            **options: the other attributes; by default the function has the name that the kind gives.

        Raises:
            ValueError: a name or the author is invalid; the message explains the rule with an example.
        """
        plain = re.sub(r"^corejax[-_]", "", name)
        if not _NAME.fullmatch(plain):
            raise ValueError(
                f"{name!r} is no valid name for a distribution: use lower-case letters, digits and single dashes, and "
                "begin with a letter. For example: corejax new-plugin acme-special"
            )
        plugin = plain.replace("-", "_")
        if plain.replace("_", "-") in _OURS:
            raise ValueError(
                f"corejax-{plain.replace('_', '-')} is one of corejax's own distributions. Choose another name, for "
                f"example: corejax new-plugin my-{plain}"
            )
        chosen = namespace if namespace is not None else plugin
        if not (_NAME.fullmatch(chosen) and chosen.isidentifier()) or keyword.iskeyword(chosen):
            raise ValueError(
                f"{chosen!r} is no valid name for a namespace, which must be a Python name in lower case. "
                f"For example: corejax new-plugin {plain} --namespace my_{plugin}"
            )
        if taken.get(chosen, f"plugin {plugin}") != f"plugin {plugin}":  # an installed version may have the name
            raise ValueError(
                f"corejax.{chosen} is taken by {taken[chosen]}. Choose another namespace, for example: "
                f"corejax new-plugin {plain} --namespace my_{chosen}"
            )
        author = options.get("author")
        if author is not None and not _AUTHOR.fullmatch(author):
            raise ValueError(f"the author must be 'Name' or 'Name <name@example.org>', got {author!r}")
        given = {key: value for key, value in options.items() if value is not None}
        primitive = given.pop("function", KINDS[given.get("kind", "elementwise")].name)
        _check_primitive(primitive, plain)
        return cls(plugin, chosen, primitive, **given)

    @property
    def distribution(self) -> str:
        """The name of the distribution and of its directory."""
        return f"corejax-{self.plugin.replace('_', '-')}"

    @property
    def package(self) -> str:
        """The name of the import package."""
        return f"corejax_{self.plugin}"

    @property
    def primitive(self) -> str:
        """The name of the primitive; the plugin's name as its prefix makes it unique."""
        return f"{self.plugin}.{self.function}"

    def tokens(self, version: str) -> dict[str, str]:
        """Return the values of the `@words@` in templates.

        Args:
            version: the kernel's version; the new distribution requires this or a later one with the same API.
        """
        found = _AUTHOR.fullmatch(self.author or f"The {self.distribution} authors")
        assert found is not None
        expression = LICENSES[self.license]
        return {
            "distribution": self.distribution,
            "package": self.package,
            "plugin": self.plugin,
            "namespace": self.namespace,
            "primitive": self.primitive,
            "module": self.function,
            "name": self.function,
            "summary": KINDS[self.kind].summary.format(name=self.function),
            "author": found["name"],
            "author_table": _author_table(found["name"], found["email"]),
            "year": str(datetime.date.today().year),
            "license_fields": f'license = "{expression}"\nlicense-files = ["LICENSE"]\n' if expression else "",
            **_versions(version),
        }


def _check_primitive(name: str, plain: str) -> None:
    if not (_NAME.fullmatch(name) and name.isidentifier()) or keyword.iskeyword(name) or hasattr(builtins, name):
        raise ValueError(
            f"{name!r} is no valid name for a primitive, which must be a Python name in lower case and no keyword or "
            f"builtin; the plugin's name is prefixed automatically. For example: corejax new-plugin {plain} "
            "--primitive my_function"
        )
    if name in _MODULES:
        raise ValueError(f"{name!r} is no valid name for a primitive: the package has another module {name}.py")


def _author_table(name: str, email: str | None) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{ name = "{quoted}"' + (f', email = "{email}"' if email else "") + " }"


def _versions(version: str) -> dict[str, str]:
    """Return the kernel's minor version and the next one, since a plugin supports one minor version."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    major, minor = (int(numbers[1]), int(numbers[2])) if numbers else (0, 1)
    return {"version": f"{major}.{minor}", "next_version": f"{major}.{minor + 1}"}
