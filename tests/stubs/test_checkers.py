"""What mypy, pyright and jedi make of the stubs: programs, README and pages, examples, mistakes, completions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("mypy")  # which `make test` has, with the versions that the stubs were written with

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".mypy_cache"
MISTAKES = Path(__file__).with_name("mistakes.py")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (at the end of )?src/(\S+)\n")  # the first line of a block that is a file of a package
# Programs as users write them, and the examples.
PROGRAMS = ("tests/stubs/programs/*.py", "examples/*.py", "examples/digits/*.py")
# Errors that say nothing of the stubs: NumPy's and scikit-learn's types, and names that a page defines again.
KNOWN = (
    "docs_how_to_several_devices.py",
    '"Path" has no',
    'for class "tuple[',
    'for class "stmt"',
    'function "diags"',
    'expected "def (b: Any) -> Any"',
    '"floating"',
    "_ConvertibleToFloat",
    "ndarray[",
    "[import-untyped]",
    # Names of a plugin that docs/hooks.md registers at run time; its author would write stubs.
    '"cube"',
    '"cubed"',
    '"acme"',
)
# The blocks of a page are joined, where names are defined again and printed.
SETTINGS = """
# pyright: basic, reportRedeclaration=false, reportUnusedExpression=false
# pyright: reportAssignmentType=false, reportPossiblyUnboundVariable=false, reportOptionalMemberAccess=false
# mypy: disable-error-code="no-redef, assignment, import-untyped, union-attr, misc, var-annotated, has-type"
"""
MYPY = ["-m", "mypy", "--config-file=", "--no-error-summary", "--hide-error-context", "--no-pretty"]


def programs(directory: Path) -> list[Path]:
    """Collect the files to check: programs, examples, a file for each page, and the packages of authors' pages.

    Pyright and mypy find the packages in `src`.
    """
    for path in (path for pattern in PROGRAMS for path in ROOT.glob(pattern)):
        shutil.copy(path, directory)
    packages = directory / "src"
    new_plugin(packages)
    for source in ROOT.glob("examples/plugins/*/src"):
        shutil.copytree(source, packages, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.egg-info"))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        blocks = []
        for block in BLOCK.findall(page.read_text()):
            if match := FILE.match(block):
                add_file(packages / match[2], block, append=bool(match[1]))
            else:
                blocks.append(block)
        if blocks:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            (directory / f"{name}.py").write_text("\n".join([SETTINGS, *blocks]))
    # Modules that the pages name: docs/first-primitive.md packs its blocks, two pages write a file.
    for module in ("acme_corejax/__init__.py", "acme_corejax/special.py", "acme_api.py"):
        add_file(packages / module, "")
    add_file(packages / "training.py", "RATE = 0.1\n\ndef step(w):\n    return w\n")
    return [*sorted(directory.glob("*.py")), *sorted(packages.rglob("*.py"))]


def new_plugin(packages: Path) -> None:
    """Write the package that docs/publishing.md starts from."""
    command = [sys.executable, "-m", "corejax", "new-plugin", "acme", "--author", "A. Author <author@example.org>"]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
        shutil.copytree(Path(directory) / "corejax-acme" / "src", packages)


def add_file(path: Path, text: str, append: bool = False) -> None:
    """Write a file of a package, or append to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.read_text() + text if append else text)


def mypy(paths: list[Path], packages: Path) -> list[str]:
    """Errors of mypy, a line each."""
    command = [sys.executable, *MYPY, f"--cache-dir={CACHE / 'stubs'}", *map(str, paths)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MYPYPATH": str(packages)}
    )
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def pyright(paths: list[Path], directory: Path) -> list[str]:
    """Errors of pyright, a line each."""
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory)
    return [line.strip() for line in done.stdout.splitlines() if " - error: " in line]


def check(errors: list[str]) -> None:
    """The pages have no errors, and nearly all mistakes are reported."""
    of_mistakes = [error for error in errors if "mistakes.py" in error]
    others = [e for e in errors if e not in of_mistakes and not any(known in e for known in KNOWN)]
    assert not others, "\n".join(others)
    reported = {int(re.search(r"mistakes\.py:(\d+)", error)[1]) for error in of_mistakes}  # type: ignore[index]
    planted = {n for n, line in enumerate(MISTAKES.read_text().splitlines(), 1) if "# mistake: " in line}
    assert len(planted) == 40 and reported <= planted
    assert len(reported) >= 36, f"not reported: lines {sorted(planted - reported)}"


def test_mypy() -> None:
    directory = CACHE / "programs"  # mypy knows what has not changed since its last run
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    check(mypy([*programs(directory), MISTAKES], directory / "src"))


def test_pyright(tmp_path: Path) -> None:
    pytest.importorskip("pyright")  # not in the tests' environment on the newest Python
    try:
        subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, check=True, timeout=180)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"pyright needs Node.js, and downloads itself once: {error}")
    check(pyright([*programs(tmp_path), MISTAKES], tmp_path))


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        ("corejax.gr", "grad"),
        ("corejax.ji", "jit"),
        ("corejax.value_", "value_and_grad"),
        ("corejax.custom_j", "custom_jvp"),
        ("corejax.nump", "numpy"),
        ("corejax.device_p", "device_put"),
        ("corejax.tree.ma", "map"),
        ("jnp.lin", "linspace"),
        ("jnp.linalg.so", "solve"),
        ("jnp.fft.rf", "rfft"),
        ("jnp.float3", "float32"),
        ("jnp.einsu", "einsum"),
        ("lax.sca", "scan"),
        ("lax.fori", "fori_loop"),
        ("random.nor", "normal"),
        ("nn.soft", "softmax"),
        ("special.gamm", "gammaln"),
        ("stats.norm.logp", "logpdf"),
        ("jnp.zeros(3).resh", "reshape"),
        ("jnp.zeros(3).at[0].se", "set"),
    ],
)
def test_jedi_completes(prefix: str, wanted: str) -> None:
    jedi = pytest.importorskip("jedi")
    imports = (
        "import corejax\nimport corejax.numpy as jnp\nfrom corejax import lax, nn, random\n"
        "from corejax.scipy import special, stats\n"
    )
    assert wanted in {found.name for found in jedi.Script(imports + prefix).complete()}


@pytest.mark.parametrize("path", sorted(MISTAKES.parent.glob("programs/*.py")), ids=lambda path: path.stem)
def test_programs_run(path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout, done.stderr
