"""Settings on the command line of a program whose flags are absl's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from absl import flags

import corejax


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Reads settings from the words that it is given; they and absl's flags are as before afterwards."""

    def parsed(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["program", *words])
        corejax.config.parse_flags_with_absl()

    before = corejax.config.values()
    yield parsed
    corejax.config.put_back(before)
    for name in [name for name in flags.FLAGS if name.startswith("corejax_")]:
        delattr(flags.FLAGS, name)


def test_settings_are_flags(parse: Callable[..., None]) -> None:
    parse("--corejax_debug_nans", "--corejax_enable_x64=1", "--corejax_rule_overrides=-acme", "--corejax_platforms=cpu")
    config = corejax.config
    assert (config.debug_nans, config.enable_x64, config.rule_overrides, config.backend) == (True, True, "-acme", "cpu")


def test_flags_that_are_not_given_change_nothing_and_others_are_left(parse: Callable[..., None]) -> None:
    before = corejax.config.values()
    parse("--nocorejax_debug_nans", "--other=3", "--", "--corejax_debug_nans")
    assert corejax.config.values() == before


def test_flags_are_read_once_more(parse: Callable[..., None]) -> None:
    parse("--corejax_default_matmul_precision=highest")
    parse("--corejax_memory_limit=4")
    assert corejax.config.memory_limit == 4


def test_a_value_that_a_setting_refuses_is_told_with_its_name(parse: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match=r"^memory_limit: "):
        parse("--corejax_memory_limit=1G")


def test_absl_reads_them_when_it_runs_the_program() -> None:
    program = """
import corejax
from absl import app
corejax.config.config_with_absl()
app.run(lambda argv: print(corejax.config.debug_nans, argv[1:]))
"""
    words = [sys.executable, "-c", program, "--corejax_debug_nans", "file"]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60).stdout == "True ['file']\n"
