"""Write `corejax/messages/homes_table.py`: what each distribution under plugins/ provides, as its plugin says."""

from __future__ import annotations

import textwrap
from pathlib import Path

from corejax import plugins
from corejax_testing.manifests.describing import describe

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "corejax" / "messages" / "homes_table.py"
KINDS = ("names", "primitives", "commands", "array_methods", "operations", "backends")
HEADER = '''"""What each distribution of this repository provides. Written by `make manifests`; do not edit."""

PROVIDED: dict[str, dict[str, str]] = {
'''


def provided() -> dict[str, dict[str, list[str]]]:
    """Return the sorted names of each kind, by distribution."""
    plugins.load_everything()
    found: dict[str, dict[str, list[str]]] = {}
    for record in plugins.plugins():
        if record.distribution is not None and list((ROOT / "plugins").glob(f"*/src/{record.package}")):
            data = describe(record)
            names = {**data["names"], **data["namespaces"]}
            found[record.distribution] = {kind: sorted(names if kind == "names" else data[kind]) for kind in KINDS}
    return dict(sorted(found.items()))


def text() -> str:
    """Return the text of the module, as ruff formats it."""
    lines = []
    for home, kinds in provided().items():
        lines.append(f'    "{home}": {{')
        for kind, names in kinds.items():
            if len(row := f'        "{kind}": "{" ".join(names)}",') <= 120:
                lines += [row] if names else []
                continue
            rows = textwrap.wrap(" ".join(names), 120 - len('            " "'), break_on_hyphens=False)
            ends = [" "] * (len(rows) - 1) + [""]
            rows = [f'            "{row}{end}"' for row, end in zip(rows, ends, strict=True)]
            lines += [f'        "{kind}": (', *rows, "        ),"]
        lines.append("    },")
    return HEADER + "\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text())
