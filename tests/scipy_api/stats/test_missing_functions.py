"""A function that a distribution does not have: which was meant, or which there are."""

from __future__ import annotations

import copy

import pytest

from corejax.scipy import stats


def test_a_misspelt_function() -> None:
    with pytest.raises(AttributeError, match=r"scipy\.stats\.norm has no function 'logpf'; did you mean 'logpdf'\?"):
        stats.norm.logpf  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no function 'gibberish'; its functions are cdf, .*pdf"):
        stats.norm.gibberish  # noqa: B018
    assert not hasattr(stats.norm, "_private")
    assert copy.deepcopy(stats.norm).name == "norm"
