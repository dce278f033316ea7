"""The API reference leaves no public name out, and shows docstrings as they are meant."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from tools.site import docstrings, namespaces, reference

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sample(x: object, *rest: object) -> None:
    """Joins `x` to a <rest> of 2 * 3.

        sample(1, 2)

    Args:
        x: what it is, on
            two lines.
        *rest: the others: all.

    Returns:
        Nothing: really.

    Raises:
        ValueError: never.
    """


def test_a_docstring_becomes_markdown() -> None:
    assert docstrings.as_markdown(docstrings.docstring(sample)).split("\n\n") == [
        "Joins `x` to a &lt;rest> of 2 \\* 3.",
        "    sample(1, 2)",
        "**Arguments**",
        "- `x`: what it is, on two lines.\n- `*rest`: the others: all.",
        "**Returns**",
        "Nothing: really.",
        "**Raises**",
        "- `ValueError`: never.",
    ]


def test_of_other_projects_functions_there_is_a_summary() -> None:
    assert docstrings.docstring(np.get_printoptions) == "Return the current print options."


@pytest.mark.parametrize("namespace", namespaces.namespaces(), ids=lambda name: name or "corejax")
def test_a_page_has_an_entry_for_each_name(namespace: str) -> None:
    page = reference.page(namespace)
    for public in namespaces.names_of(namespace):
        assert f"#{public.path} }}" in page or f"<a id='{public.path}'></a>" in page, public.path


def test_the_modules_that_the_facade_is_made_of_are_not_public() -> None:
    found = namespaces.namespaces()
    assert {"", "lax", "numpy", "tree", "nn.initializers"} <= set(found)
    assert not {"transforms", "interpreters", "caches", "extend.dtypes"} & set(found)


def test_an_alias_leads_to_the_first_name() -> None:
    first = namespaces.originals()
    assert all(first[id(p.value)].namespace == "tree" for p in namespaces.names_of("tree_util") if id(p.value) in first)
    assert "- <a id='corejax.remat'></a>`corejax.remat` is [`corejax.checkpoint`](#corejax.checkpoint)" in (
        reference.page("")
    )


def test_all_pages_are_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if f": {page}\n" not in navigation]


@pytest.mark.parametrize("namespace", namespaces.namespaces(), ids=lambda name: name or "corejax")
def test_no_address_of_this_process_is_shown(namespace: str) -> None:
    signatures = [reference.signature(public) for public in namespaces.names_of(namespace)]
    assert not [text for text in signatures if "0x" in text]


def test_an_object_is_shown_with_its_methods() -> None:
    page = reference.page("")
    assert "Process-wide settings as attributes." in page
    assert "- `update(name, value)`: Set one setting for the whole process." in page
    assert " at 0x" not in page


def test_the_overview_leads_to_every_page() -> None:
    pages = reference.pages()
    overview = pages.pop("reference/index.md")
    assert all(f"]({path.removeprefix('reference/')})" in overview for path in pages)
