"""Write `corejax/messages/homes.txt`: what each distribution under plugins/ provides, as its plugin says."""

from __future__ import annotations

from pathlib import Path

from corejax import plugins
from corejax_testing.manifests.describing import describe

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "corejax" / "messages" / "homes.txt"
KINDS = ("names", "primitives", "commands", "array_methods", "operations", "backends", "rule_kinds")


def provided() -> dict[str, dict[str, list[str]]]:
    """Return the sorted names of each kind, by distribution."""
    plugins.load_everything()
    found: dict[str, dict[str, list[str]]] = {}
    for record in plugins.plugins():
        if record.distribution is not None and list((ROOT / "plugins").glob(f"*/src/{record.package}")):
            data = describe(record)
            data["names"] |= data["namespaces"]
            data["rule_kinds"] = {k for k, _ in data["derivations"]} | {k for r in data["rules"].values() for k in r}
            found[record.distribution] = {kind: sorted(data[kind]) for kind in KINDS}
    return dict(sorted(found.items()))


def text() -> str:
    """Return the text of the file: lines with a distribution, a kind and its names."""
    found = [(home, kind, names) for home, kinds in provided().items() for kind, names in kinds.items()]
    lines = [f"{' '.join((home, kind, *names))}\n" for home, kind, names in found if names or kind == "names"]
    return "".join(
        sorted([*lines, *_lines_of_bridges({home for home, _, _ in found})], key=lambda line: line.split()[0])
    )


def _lines_of_bridges(installed: set[str]) -> list[str]:
    """Return the lines of the bridges that are not installed here, as the file has them."""
    lines = FILE.read_text().splitlines(keepends=True)
    return [line for line in lines if line.startswith("corejax-to-") and line.split()[0] not in installed]


if __name__ == "__main__":
    FILE.write_text(text())
