"""Names of a new distribution and of what is in it, made from one name and checked."""

from __future__ import annotations

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
        module: of the primitive; also the primitive's name behind the dot.
        summary: one line about it.
        translated: whether it has a translation of its own.
    """

    directory: str
    module: str
    summary: str
    translated: bool


KINDS = {
    "elementwise": Kind("elementwise", "softsign", "softsign(x) = x / (1 + |x|)", True),
    "higher-order": Kind("higher_order", "named_call", "Calls of functions as one equation that bears a name", True),
    "impl-only": Kind("impl_only", "running_max", "The largest number so far along an axis", False),
}

# Option -> SPDX expression.
LICENSES = {"apache-2.0": "Apache-2.0", "mit": "MIT", "bsd-3-clause": "BSD-3-Clause", "none": None}


@dataclass(frozen=True)
class Plan:
    """What is to be written.

    Attributes:
        plugin: name of the entry point and prefix of the primitive's name ("acme_special").
        namespace: `corejax.<namespace>` is where users find it.
        kind: key of `KINDS`.
        license: key of `LICENSES`.
        author: "Name" or "Name <mail>".
    """

    plugin: str
    namespace: str
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
            options: the other attributes.

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
        return cls(plugin, chosen, **{key: value for key, value in options.items() if value is not None})

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
        return f"{self.plugin}.{KINDS[self.kind].module}"

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
            "module": KINDS[self.kind].module,
            "summary": KINDS[self.kind].summary,
            "author": found["name"],
            "author_table": _author_table(found["name"], found["email"]),
            "year": str(datetime.date.today().year),
            "license_fields": f'license = "{expression}"\nlicense-files = ["LICENSE"]\n' if expression else "",
            **_versions(version),
        }


def _author_table(name: str, email: str | None) -> str:
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{ name = "{quoted}"' + (f', email = "{email}"' if email else "") + " }"


def _versions(version: str) -> dict[str, str]:
    """The kernel's minor version, and the next one: plugins are made for one."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    major, minor = (int(numbers[1]), int(numbers[2])) if numbers else (0, 1)
    return {"version": f"{major}.{minor}", "next_version": f"{major}.{minor + 1}"}
