"""Write the project's addresses into every pyproject file: `python -m tools.project_urls`.

REPOSITORY and DOCUMENTATION are empty until the project has public addresses, and then no distribution has a table
`[project.urls]`: a wrong link is worse than none. To publish, fill them in and run the tool. Package indexes show the
links beside each distribution. `--check` writes nothing, and fails if a file is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Without a slash at the end, for example "https://example.org/corejax".
REPOSITORY = ""
DOCUMENTATION = ""

TABLE = re.compile(r"\[project\.urls\]\n(?:.+\n)*\n")


def pyproject_files() -> list[Path]:
    """Return the pyproject files of the kernel, the plugins and the example plugins."""
    return [
        ROOT / "pyproject.toml",
        *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        *sorted(ROOT.glob("examples/plugins/*/pyproject.toml")),
    ]


def table(folder: str, repository: str = "", documentation: str = "") -> str:
    """Return the table `[project.urls]` of a distribution in `folder`, or "" if there is no address."""
    urls = {}
    if documentation:
        urls["Documentation"] = documentation
    if repository:
        urls["Source"] = repository if folder == "." else f"{repository}/tree/main/{folder}"
        urls["Changelog"] = f"{repository}/blob/main/CHANGELOG.md"
        urls["Issues"] = f"{repository}/issues"
    return "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls.items()) + "\n" if urls else ""


def with_table(text: str, urls: str) -> str:
    """Return the text of a pyproject file with the table `urls` before the table that follows `[project]`."""
    text = TABLE.sub("", text)
    head, separator, rest = text.partition("\n\n[project.")
    return f"{head}\n\n{urls}[project.{rest}" if urls and separator else text


def main() -> int:
    """Write the tables, or with `--check` list the files that are out of date and return 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    check = parser.parse_args().check
    stale = []
    for file in pyproject_files():
        folder = file.parent.relative_to(ROOT).as_posix()
        before = file.read_text(encoding="utf-8")
        after = with_table(before, table(folder, REPOSITORY, DOCUMENTATION))
        if after != before:
            stale.append(str(file.relative_to(ROOT)))
            if not check:
                file.write_text(after, encoding="utf-8")
    for name in stale:
        print(f"{name} is out of date" if check else f"wrote {name}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
