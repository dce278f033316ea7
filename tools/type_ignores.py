"""Find each `type: ignore` in the packages that lacks an error code or a reason, and print its place.

`python -m tools.type_ignores` fails if there is one. The form is `# type: ignore[attr-defined]  # the reason`.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator

from tools.odd_words import ROOT, files, packages

WHOLE = re.compile(r"#\s*type:\s*ignore\[[\w, -]+\]\s+#\s*\S")
ANY = re.compile(r"#\s*type:\s*ignore")


def incomplete(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each comment in `source` that ignores an error without saying why."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and ANY.match(token.string) and not WHOLE.match(token.string):
            yield token.start[0], token.string


def main() -> int:
    """Print the places, and return 1 if there are any."""
    places = [
        f"{path.relative_to(ROOT)}:{line}: {text}: say why: # type: ignore[code]  # reason"
        for package in packages()
        for path in files(package)
        for line, text in incomplete(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(places) or "Each `type: ignore` has a code and a reason.")
    return bool(places)


if __name__ == "__main__":
    sys.exit(main())
