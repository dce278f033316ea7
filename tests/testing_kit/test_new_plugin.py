"""`corejax new-plugin`: what it writes installs, passes its own tests, and is listed; what it refuses, and how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from corejax.cli import main
from corejax_testing.scaffolding.names import KINDS, LICENSES, Plan
from corejax_testing.scaffolding.writing import files
from tests.packaging.building import build as build_wheels

ROOT = Path(__file__).parents[2]
QUICK = "COREJAX_DISABLE_MOST_OPTIMIZATIONS"  # as tests/conftest.py says


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["new-plugin", *arguments], prog_name="corejax")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def python(*arguments: str, cwd: Path, path: Path) -> str:
    """Run Python with one more directory of installed distributions; its standard output."""
    ours = ("COREJAX", "PYTEST")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours) or name == QUICK}
    # An editable install of the kernel is found as it is; one run from its sources needs the way to them.
    environment = {**clean, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)]), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


# -- what is written works -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Installed:
    """New distributions, one of each kind and one with a primitive of another name, and where they are installed."""

    sources: Path
    path: Path

    def source(self, kind: str) -> Path:
        return self.sources / f"corejax-new-{kind}"

    @property
    def renamed(self) -> Path:
        return self.sources / "corejax-acme"


PLUGINS = [*(f"new_{kind.replace('-', '_')}" for kind in KINDS), "acme"]
BUILT = "elementwise"  # as a wheel; the other kinds have the same project file
RENAMED = "higher-order"


def build(source: Path, site: Path, work: Path) -> None:
    """Install a distribution's wheel."""
    pytest.importorskip("setuptools", minversion="77")
    with zipfile.ZipFile(build_wheels({source.name: source}, work).files[source.name]) as wheel:
        wheel.extractall(site)


def link(source: Path, site: Path) -> None:
    """Install a distribution as an editable install does."""
    package = source.name.replace("-", "_")
    plugin = package.removeprefix("corejax_")
    info = site / f"{package}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {source.name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[corejax.plugins]\n{plugin} = {package}.plugin\n")
    (site / package).symlink_to(source / "src" / package)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Written by the command, and installed."""
    found = Installed(tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("installed"))
    for kind in KINDS:
        result = run(f"new-{kind}", "--kind", kind, "--directory", str(found.sources))
        assert result.exit_code == 0, result.output
        if kind == BUILT:
            build(found.source(kind), found.path, tmp_path_factory.mktemp("built"))
        else:
            link(found.source(kind), found.path)
    assert run("acme", *renaming(RENAMED), "--directory", str(found.sources)).exit_code == 0
    link(found.renamed, found.path)
    return found


def renaming(kind: str) -> list[str]:
    return ["--kind", kind, "--primitive", "wobble"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pip_installs_it(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    assert run("acme", "--kind", kind, "--directory", str(tmp_path)).exit_code == 0
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-compile"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site")]
    python(*pip, *options, str(tmp_path / "corejax-acme"), cwd=tmp_path, path=tmp_path / "site")
    assert (tmp_path / "site" / "corejax_acme" / "corejax_manifest.json").exists()


def test_their_own_tests_pass(installed: Installed) -> None:
    """Of the conformance checks, which take longest, only the manifest's; the others are slow."""
    homes = [*map(installed.source, KINDS), installed.renamed]
    options = ["-v", "-p", "no:cacheprovider", "--rootdir", str(installed.sources), "-k", "manifest or not conformance"]
    options += ["--import-mode=importlib"]  # several directories have modules of one name
    report = python("-m", "pytest", *options, *map(str, homes), cwd=installed.sources, path=installed.path)
    assert "skipped" not in report and "failed" not in report
    passed = [line.split("/tests/")[0] for line in report.splitlines() if " PASSED " in line]
    assert {Path(path).name for path in passed} == {home.name for home in homes}, report


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_conforms(installed: Installed, kind: str) -> None:
    options = ["-q", "-p", "no:cacheprovider", "tests/test_conformance.py"]
    assert "passed" in python("-m", "pytest", *options, cwd=installed.source(kind), path=installed.path)


def test_it_is_listed(installed: Installed) -> None:
    plugins = [f"--plugin={name}" for name in PLUGINS]
    text = python("-m", "corejax", "list-primitives", "--json", *plugins, cwd=installed.path, path=installed.path)
    rules = {row["name"]: row["rules"] for row in json.loads(text)["primitives"]}
    for row in rules.values():
        assert row.pop("checkify") == "derived"  # plugins' rule kinds
        assert row.pop("jet") in ("derived", "not_required")
        assert row.pop("discharge") == "not_required"
    assert set(rules) == {
        "new_elementwise.softsign", "new_higher_order.named_call", "new_impl_only.running_max", "acme.wobble"
    }  # fmt: skip
    assert set(rules["new_higher_order.named_call"].values()) == {"own"}
    elementwise = rules["new_elementwise.softsign"]
    assert {kind for kind, status in elementwise.items() if status != "own"} == {
        "transpose",
        "partial_eval",
        "partial_eval_jaxpr",
    }, "it is not linear, and first-order"
    assert {kind for kind, status in rules["new_impl_only.running_max"].items() if status == "own"} == {
        "impl",
        "abstract_eval",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_its_manifest_ships(installed: Installed, kind: str) -> None:
    pyproject = tomllib.loads((installed.source(kind) / "pyproject.toml").read_text())
    package = f"corejax_new_{kind.replace('-', '_')}"
    assert "corejax_manifest.json" in pyproject["tool"]["setuptools"]["package-data"][package]
    assert (installed.path / package / "corejax_manifest.json").exists()


def test_its_tests_say_when_its_manifest_is_stale(installed: Installed) -> None:
    test = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_conformance.py", "-k", "manifest"]
    manifest = installed.path / "corejax_new_elementwise" / "corejax_manifest.json"
    shipped = manifest.read_text()
    try:
        manifest.write_text(shipped.replace("softsign", "hardsign"))
        with pytest.raises(AssertionError, match="corejax write-manifest new_elementwise"):
            python(*test, cwd=installed.source("elementwise"), path=installed.path)
    finally:
        manifest.write_text(shipped)


def test_a_translation_added_later_is_found(installed: Installed) -> None:
    """As somebody writes it who starts from an impl."""
    module = installed.path / "corejax_new_impl_only" / "translations.py"
    before = module.read_text()
    lines = [line.removeprefix("    ") for line in before.splitlines() if line.startswith("    ")]
    rule = "\n".join(lines[:-1])  # the last one is another way
    assert 'by="host callback"' in lines[-1]
    body = """return ctx.full(in_avals[0], 7)"""
    program = """
import numpy as np
import corejax
from corejax.cli import main
main(["list-primitives", "--json", "--plugin=new_impl_only"], standalone_mode=False)
print(corejax.jit(corejax.new_impl_only.running_max)(np.ones(2, np.float32)))
"""
    try:
        module.write_text(before + rule.replace("...", body) + "\n")
        printed = python("-c", program, cwd=installed.path, path=installed.path)
    finally:
        module.write_text(before)
    text, _, computed = printed.rstrip().rpartition("\n")
    assert json.loads(text)["primitives"][0]["rules"]["xla_translation"] == "own"
    assert computed.split() == ["[7.", "7.]"]


def test_a_primitive_of_another_name_needs_no_renaming(installed: Installed) -> None:
    require_only_the_name(installed.renamed, RENAMED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != RENAMED])
def test_other_kinds_need_no_renaming(kind: str, tmp_path: Path) -> None:
    assert run("acme", *renaming(kind), "--directory", str(tmp_path)).exit_code == 0
    home = tmp_path / "corejax-acme"
    require_only_the_name(home, kind)
    link(home, tmp_path / "site")
    options = ["-q", "-p", "no:cacheprovider", "--deselect", "tests/test_conformance.py"]
    report = python("-m", "pytest", *options, cwd=home, path=tmp_path / "site")
    assert "passed" in report and "failed" not in report


def require_only_the_name(home: Path, kind: str) -> None:
    assert {f"src/corejax_acme/{name}.py" for name in ("plugin", "wobble", "examples", "translations")} | {
        "tests/test_wobble.py"
    } <= {path.relative_to(home).as_posix() for path in home.rglob("*.py")}
    written = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert not [path for path in written if KINDS[kind].name in path.read_text()]


# -- what is written ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str) -> None:
    plan = Plan.of("acme-special", None, {}, kind=kind)
    written = files(plan, "0.1.0")
    module = KINDS[kind].name
    expected = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        ".gitignore",
        ".github/workflows/test.yml",
        "src/corejax_acme_special/__init__.py",
        "src/corejax_acme_special/py.typed",
        "src/corejax_acme_special/plugin.py",
        "src/corejax_acme_special/examples.py",
        "src/corejax_acme_special/translations.py",
        f"src/corejax_acme_special/{module}.py",
        f"tests/test_{module}.py",
        "tests/test_conformance.py",
        "tests/test_readme.py",
    }
    assert set(written) == expected
    for name, text in written.items():
        if name == "LICENSE" or not text:
            continue
        assert text.endswith("\n") and not text.endswith("\n\n") and "\t" not in text, name
        assert not any(line != line.rstrip() for line in text.splitlines()), name
        if name.endswith(".py"):
            compile(text, name, "exec")
            assert max(map(len, text.splitlines()), default=0) <= 120, name


@pytest.mark.parametrize("license", LICENSES)
def test_project_file(license: str) -> None:
    plan = Plan.of("corejax-acme_special", "acme", {}, license=license, author='A. "U." Thor <author@example.org>')
    written = files(plan, "0.3.1")
    project = tomllib.loads(written["pyproject.toml"])["project"]
    assert project["name"] == "corejax-acme-special"
    assert project["authors"] == [{"name": 'A. "U." Thor', "email": "author@example.org"}]
    assert project["entry-points"] == {"corejax.plugins": {"acme_special": "corejax_acme_special.plugin"}}
    assert "corejax>=0.3,<0.4" in project["dependencies"]
    assert project.get("license") == LICENSES[license] and ("LICENSE" in written) == (license != "none")
    if license in ("mit", "bsd-3-clause"):
        assert 'A. "U." Thor' in written["LICENSE"]
    if license == "apache-2.0":
        assert written["LICENSE"] == (ROOT / "LICENSE").read_text()
    assert '{"acme": "corejax_acme_special.softsign"}' in written["src/corejax_acme_special/plugin.py"]


# -- what is refused ------------------------------------------------------------------------------------------------

HOUSE = [tomllib.loads(file.read_text())["project"]["name"] for file in ROOT.glob("plugins/*/pyproject.toml")]


@pytest.mark.parametrize("name", [*HOUSE, "numpy", "lax_basic"])
def test_names_of_the_house(name: str, tmp_path: Path) -> None:
    result = run(name, "--namespace", "my_own", "--directory", str(tmp_path))
    assert result.exit_code == 2 and "one of corejax's own distributions" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["Acme", "3d", "acme--x", "acme.x", "acme x", "-acme", "corejax-", "", "acme/x", "é"])
def test_bad_names(name: str, tmp_path: Path) -> None:
    result = run("--directory", str(tmp_path), "--", name)
    assert result.exit_code == 2
    assert "is no valid name for a distribution" in result.output and "new-plugin acme-special" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["class"], "'class' is no valid name for a namespace"),
        (["acme", "--namespace", "my-acme"], "'my-acme' is no valid name for a namespace"),
        (["acme", "--namespace", "grad"], "corejax.grad is taken by the kernel. Choose another namespace"),
        (["extend"], "corejax new-plugin extend --namespace my_extend"),
        (["acme", "--author", "a@b <>"], "the author must be 'Name' or 'Name <name@example.org>'"),
        (["acme", "--kind", "linear"], "'linear' is not one of"),
        (["acme", "--primitive", "acme.cube"], "new-plugin acme --primitive my_function"),
        (["acme", "--primitive", "lambda"], "'lambda' is no valid name for a primitive"),
        (["acme", "--primitive", "abs"], "'abs' is no valid name for a primitive"),
        (["acme", "--primitive", "examples"], "another module examples.py"),
        (["acme", "--primitive", "reference"], "its modules use the name for something else"),
        (["acme", "--primitive", "np"], "its modules use the name for something else"),
        (["acme", "--license", "gpl"], "'gpl' is not one of"),
    ],
)
def test_bad_options(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = run(*arguments, "--directory", str(tmp_path))
    assert result.exit_code == 2 and words in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_namespaces_of_other_plugins() -> None:
    with pytest.raises(ValueError, match=r"corejax\.lax is taken by plugin lax_basic"):
        Plan.of("acme", "lax", {"lax": "plugin lax_basic"})
    assert Plan.of("acme", None, {"acme": "plugin acme"}).namespace == "acme", "its own, installed already"


def test_stubs_of_a_new_plugin(installed: Installed) -> None:
    program = """
from corejax.extend import load_everything
from corejax.extend.plugins import plugin_records
from corejax_testing.stub_files.fragments import fragments
load_everything()
records = plugin_records()
(record,) = [record for record in records if record.name == "new_elementwise"]
print(fragments(record, records)["new_elementwise"])
"""
    stub = python("-c", program, cwd=installed.sources, path=installed.path)
    assert f"{KINDS[BUILT].name}" in stub and "corejax.arrays.array" in stub


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A new distribution in an empty directory, which is as good as none, and what the command says."""
    home = tmp_path_factory.mktemp("new") / "corejax-acme"
    home.mkdir()
    result = run("acme", "--directory", str(home.parent))
    assert result.exit_code == 0, result.output
    return home, result.output


def test_never_overwrites(written: tuple[Path, str]) -> None:
    home, _ = written
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    result = run("acme", "--directory", str(home.parent), "--kind", "impl-only")
    assert result.exit_code == 1 and "exists and is not empty; nothing was written" in result.output
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_output_says_what_to_do_next(written: tuple[Path, str]) -> None:
    home, output = written
    lines = output.splitlines()
    assert f"wrote {home / 'pyproject.toml'}" in lines
    assert [line.strip() for line in lines[-3:-1]] == ["corejax write-stubs acme", "pytest"]
    manifest = home / "src" / "corejax_acme" / "corejax_manifest.json"
    assert f"wrote {manifest}" in lines and json.loads(manifest.read_text())["plugins"]["acme"]["version"] == "0.1.0"
    assert lines[-1].strip() == "corejax list-primitives --plugin acme"
