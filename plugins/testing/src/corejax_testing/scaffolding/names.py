"""Names of a new distribution and of what is in it, made from one name and checked."""

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
        directory: of its templates.
        name: of the primitive behind the dot, of its module and of its function, if the author gives none.
        summary: one line about it, with `{name}` for the name.
    """

    directory: str
    name: str
    summary: str


KINDS = {
    "elementwise": Kind("elementwise", "softsign", "{name}(x) = x / (1 + |x|)"),
    "higher-order": Kind("higher_order", "named_call", "Calls of functions as one equation that bears a name"),
    "impl-only": Kind("impl_only", "running_max", "The largest number so far along an axis"),
}
# corejax's own distributions, behind the `corejax-`.
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
    "testing",
    "to-jax",
    "to-torch",
    "xla-backend",
)
_MODULES = ("plugin", "examples", "translations")  # the others of the package

# Option -> SPDX expression.
LICENSES = {"apache-2.0": "Apache-2.0", "mit": "MIT", "bsd-3-clause": "BSD-3-Clause", "none": None}


@dataclass(frozen=True)
class Plan:
    """What is to be written.

    Attributes:
        plugin: name of the entry point and prefix of the primitive's name ("acme_special").
        namespace: `corejax.<namespace>` is where users find it.
        function: the function that users call; its module and, behind the dot, the primitive have its name.
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
        """A plan whose names are fit for distributions, modules and entry points.

        Args:
            name: what the user calls it: with dashes or underscores, with `corejax-` before it or without.
            namespace: the facade's name for it, or None: as the plugin.
            taken: names of the facade that are not free -> whose they are.
            options: the other attributes; the primitive's name by default as the kind has it.

        Raises:
            ValueError: a name or the author is not fit; the text says what is, with an example.
        """
        plain = re.sub(r"^corejax[-_]", "", name)
        if not _NAME.fullmatch(plain):
            raise ValueError(
                f"{name!r} is no name for a distribution: lower-case letters, digits and single dashes, a letter "
                "first. For example: corejax new-plugin acme-special"
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
                f"{chosen!r} is no name for a namespace, which is a Python name in lower case. "
                f"For example: corejax new-plugin {plain} --namespace my_{plugin}"
            )
        if taken.get(chosen, f"plugin {plugin}") != f"plugin {plugin}":  # its own, where it is installed already
            raise ValueError(
                f"corejax.{chosen} is taken, by {taken[chosen]}. Choose another namespace, for example: "
                f"corejax new-plugin {plain} --namespace my_{chosen}"
            )
        author = options.get("author")
        if author is not None and not _AUTHOR.fullmatch(author):
            raise ValueError(f"an author is 'Name' or 'Name <name@example.org>', got {author!r}")
        given = {key: value for key, value in options.items() if value is not None}
        primitive = given.pop("function", KINDS[given.get("kind", "elementwise")].name)
        _check_primitive(primitive, plain)
        return cls(plugin, chosen, primitive, **given)

    @property
    def distribution(self) -> str:
        """Name of the distribution, and of its directory."""
        return f"corejax-{self.plugin.replace('_', '-')}"

    @property
    def package(self) -> str:
        """Name of the import package."""
        return f"corejax_{self.plugin}"

    @property
    def primitive(self) -> str:
        """Name of the primitive; the plugin's name in it keeps it apart from everybody else's."""
        return f"{self.plugin}.{self.function}"

    def tokens(self, version: str) -> dict[str, str]:
        """What stands for the `@words@` of the templates.

        Args:
            version: of the kernel; the new distribution asks for this one or a later one with the same API.
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
            f"{name!r} is no name for a primitive: a Python name in lower case, which Python has no use for; the "
            f"plugin's name comes before it by itself. For example: corejax new-plugin {plain} --primitive my_function"
        )
    if name in _MODULES:
        raise ValueError(f"{name!r} is no name for a primitive: the module {name}.py is another one of the package")


def _author_table(name: str, email: str | None) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{ name = "{quoted}"' + (f', email = "{email}"' if email else "") + " }"


def _versions(version: str) -> dict[str, str]:
    """The kernel's minor version, and the next one: plugins are made for one."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    major, minor = (int(numbers[1]), int(numbers[2])) if numbers else (0, 1)
    return {"version": f"{major}.{minor}", "next_version": f"{major}.{minor + 1}"}
