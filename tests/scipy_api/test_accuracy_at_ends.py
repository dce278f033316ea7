"""Special functions and distributions at the ends of their domains: within the bounds of the table, by mpmath."""

from __future__ import annotations

import inspect
import math

import pytest
from click.testing import CliRunner

from corejax.cli import main
from corejax.scipy import special, stats
from corejax_scipy.accuracy import ends

SAMPLE = ("gamma", "comb", "cauchy.cdf")


@pytest.mark.parametrize("mode", ["run", "compiled"])
@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name, mode):
    found = ends.measure(name, "float64", mode, 30)
    assert found.worst <= found.bound and found.count > 10, found


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["run", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(ends.TABLE))
def test_all(name, dtype, mode):
    found = ends.measure(name, dtype, mode, 60)
    assert found.worst <= found.bound and found.count > 10, found


def test_an_error_is_found(monkeypatch):
    right = ends.function("dawsn")
    monkeypatch.setitem(ends._OTHERS, "dawsn", lambda x: right(x) * (1 + 1e-10 * (abs(x) > 1e10).astype(x.dtype)))
    found = ends.measure("dawsn", "float64", "run", 20)
    assert 0.9e-10 < found.worst < 1.1e-10 and abs(found.where[0]) > 1e10


def test_what_overflows_is_infinite():
    assert ends._error(math.inf, 1e39, "float32", 0.0) == 0.0 == ends._error(0.0, 1e-40, "float32", 0.0)
    assert ends._error(-math.inf, 1e39, "float32", 0.0) == ends._error(math.nan, 1.0, "float32", 0.0) == math.inf


# Functions of vectors or complex numbers, and those whose parts have rows; steps and straight lines.
LEFT_OUT = {
    "bernoulli", "bessel_jn", "fresnel", "log_softmax", "logsumexp", "sici", "softmax", "sph_harm_y", "wofz",
    "bernoulli.cdf", "bernoulli.ppf", "dirichlet.logpdf", "multinomial.logpmf", "multivariate_normal.logpdf",
    "poisson.entropy", "uniform.cdf", "uniform.logpdf", "uniform.ppf",
}  # fmt: skip


def test_table_is_complete():
    """Every function of special, and of every distribution, has a bound; densities are exponentials of logarithms."""
    wanted = set(special.__all__)
    for name in stats.__all__:
        distribution = getattr(stats, name)
        if inspect.ismodule(distribution):
            wanted |= {f"{name}.{key}" for key in distribution._functions()}
    missing = {name for name in wanted - set(ends.TABLE) if name.partition(".")[2] not in ("pdf", "pmf")}
    assert missing == LEFT_OUT
    assert set(ends.TABLE) == set(ends.REFERENCES)


def test_command():
    run = CliRunner().invoke(main, ["accuracy", "--ends", "gamma", "--dtype", "float64", "--points", "20"])
    assert run.exit_code == 0, run.output
    assert [line.split()[:2] for line in run.output.splitlines()[1:]] == [["gamma", "float64"]] * 2
    run = CliRunner().invoke(main, ["accuracy", "--ends", "wofz"])
    assert run.exit_code == 2 and "there is no function 'wofz' to measure" in run.output
