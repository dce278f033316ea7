"""The examples of the reference print what they show, and no public function of these namespaces is without one."""

from __future__ import annotations

import textwrap

import pytest

from tools.site import examples, namespaces

WRITTEN = [name for name in namespaces.namespaces() if examples.file_of(name).exists()]
# What would leave something behind in this process, or needs what is not there.
BRIDGES = {"from_jax", "to_jax", "to_torch"}  # need jax or PyTorch
NOT_ALL = {
    "": {"define_absl_flags", "parse_absl_flags"},  # of a program's command line
    "ffi": {"register_ffi_target", "register_ffi_type"},
    "profiler": {
        "ProfileData",
        "ProfileEvent",
        "ProfileLine",
        "ProfilePlane",
        "register_subprocess",
        "start_server",
        "stop_server",
    },
    "random": {"Key", "register_generator"},
}


@pytest.mark.parametrize("namespace", WRITTEN, ids=lambda name: name or "corejax")
def test_examples_print_what_they_show(namespace: str) -> None:
    wrong = [
        f"{name} prints\n{textwrap.indent(got, '    ')}"
        for name, text in examples.read(namespace).items()
        for got in examples.failures(namespace, name, text).values()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("namespace", WRITTEN, ids=lambda name: name or "corejax")
def test_every_public_function_has_an_example(namespace: str) -> None:
    assert set(examples.missing(namespace)) - BRIDGES == NOT_ALL.get(namespace, set())


def test_the_namespaces_of_users_have_examples() -> None:
    assert {"", "lax", "nn", "nn.initializers", "numpy", "tree", "checkify", "export", "ops"} <= set(WRITTEN)


@pytest.mark.parametrize("namespace", WRITTEN, ids=lambda name: name or "corejax")
def test_examples_are_of_public_names(namespace: str) -> None:
    assert not set(examples.read(namespace)) - {public.name for public in namespaces.names_of(namespace)}


def test_what_an_example_prints_is_noticed_and_written() -> None:
    text = ">>> 1 + 1\n3\n>>> int('x')\n>>> for i in range(2):\n...     print(i)\n0\n1"
    printed = examples.failures("", "sample", text)
    assert printed[0] == "2\n" and "ValueError: invalid literal" in printed[2] and len(printed) == 2
    assert examples.failures("", "sample", examples.corrected(text, printed)) == {}


def test_texts_differ_in_words_and_numbers_but_not_in_their_last_digits() -> None:
    assert examples.same("Array([ 1.  , 0.3333333])", "Array([1.        , 0.33333334])")
    assert examples.same("nan -1.5e-07", "nan -1.5000001e-07")
    assert not examples.same("Array([1., 2.])", "Array([1., 2.1])")
    assert not examples.same("[1, 2]", "[1, 3]") and not examples.same("float32", "float64")
    assert not examples.same("[1.]", "[1. 1.]")
