"""Rows become functions with signatures, docstrings and errors like those of functions that are written by hand."""

import inspect
import traceback

import numpy as np
import pytest

import corejax.random as random

KEY = random.key(1)


def test_signatures():
    names = {name: list(inspect.signature(getattr(random, name)).parameters) for name in ("cauchy", "triangular")}
    assert names["cauchy"] == ["key", "shape", "dtype", "out_sharding"]
    assert names["triangular"] == ["key", "left", "mode", "right", "shape", "dtype", "out_sharding"]
    sigma = inspect.signature(random.lognormal).parameters["sigma"]
    assert (sigma.default, sigma.kind) == (1.0, sigma.POSITIONAL_OR_KEYWORD)
    assert inspect.signature(random.uniform).parameters["out_sharding"].kind is sigma.KEYWORD_ONLY
    assert (random.cauchy.__name__, random.cauchy.__module__) == ("cauchy", "corejax_random.distributions.quantiles")


def test_docstrings():
    lines = inspect.getdoc(random.lognormal).splitlines()
    assert "    sigma: not negative." in lines and "    key: a key." in lines
    assert any(line.startswith("    out_sharding: ") for line in lines)
    assert any(line.startswith("    TypePromotionError: ") for line in lines)
    assert "parameter" not in inspect.getdoc(random.maxwell)
    uniform = inspect.getdoc(random.uniform)
    assert uniform.index("    key: ") < uniform.index("    shape: ") < uniform.index("    out_sharding: ")
    assert uniform.index("    out_sharding: ") < uniform.index("Raises:")


def test_arguments_by_name():
    wanted = random.rayleigh(KEY, 2.0, (3,), "float16")
    got = random.rayleigh(dtype="float16", shape=(3,), scale=2.0, key=KEY)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((KEY,), {}, r"pareto\(\) missing 1 required positional argument: 'b'"),
        ((), {"b": 2.0}, r"pareto\(\) missing 1 required positional argument: 'key'"),
        ((KEY, 2.0), {"b": 2.0}, r"pareto\(\) got multiple values for argument 'b'"),
        ((KEY, 2.0), {"p": 2.0}, r"pareto\(\) got an unexpected keyword argument 'p'"),
    ],
)
def test_wrong_arguments(args, kwargs, message):
    with pytest.raises(TypeError, match=message) as caught:
        random.pareto(*args, **kwargs)
    assert not [f for f in traceback.extract_tb(caught.tb) if "corejax_random" in f.filename]
