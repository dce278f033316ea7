"""The check of all registered generators, which `corejax verify random_bits` runs. Imported by corejax-testing only."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import corejax
from corejax.extend import load_everything
from corejax_random.generators.table import UINTS, PRNGImpl, known_generators
from corejax_random.keys.functions import fold_in, key, key_data, split
from corejax_random.keys.primitives import random_bits_p
from corejax_testing import Call, Check, CheckFailure, NotApplicable

_WORDS = 2048
_HINT = "a generator's functions must depend only on their arguments: seed, split, fold_in, random_bits of its PRNGImpl"


def check_generators(call: Call, rng: np.random.Generator) -> None:
    """Check that the words of every generator are reproducible, uniform, and independent for different keys."""
    if call.primitive is not random_bits_p:
        raise NotApplicable("generators are checked with random_bits only")
    load_everything()
    for impl in list(known_generators().values()):
        check_generator(impl)


def check_generator(impl: PRNGImpl) -> None:
    """Check one generator.

    Raises:
        CheckFailure: if the generator fails. The message names the generator.
    """
    first = key(0, impl=impl.name)
    seeds = {"the key of seed 0": first, "the key of seed 1": key(1, impl=impl.name)}
    split_keys = {f"key {i} of split": k for i, k in enumerate(split(first, 3))}
    folded = {f"fold_in of {i}": fold_in(first, i) for i in range(2)}
    all_keys = seeds | split_keys | folded
    words = {name: _bits(k, 32, (_WORDS,)) for name, k in all_keys.items()}
    for name, k in all_keys.items():
        _require(impl, key_data(k).shape == impl.key_shape, f"the words of {name} have shape {key_data(k).shape}")
        _require(impl, np.array_equal(words[name], _bits(k, 32, (_WORDS,))), f"{name} generates other words each time")
        _check_uniform(impl, name, words[name])
    for names in ([*seeds, *split_keys], [*seeds, *folded]):  # fold_in may return a key that split returns
        for name, other in itertools.combinations(names, 2):
            differing = np.unpackbits((words[name] ^ words[other]).view(np.uint8)).mean()
            _require(impl, 0.45 < differing < 0.55, f"the words of {name} and of {other} depend on each other")
    for width, dtype in UINTS.items():
        for shape in ((), (0,), (3, 2)):
            eager = _bits(first, width, shape)
            compiled = np.asarray(
                corejax.jit(lambda k, w=width, s=shape: random_bits_p.bind(k, bit_width=w, shape=s))(first)
            )
            _require(
                impl, (eager.dtype, eager.shape) == (dtype, shape), f"bits of {width} are {eager.dtype}{eager.shape}"
            )
            _require(impl, np.array_equal(eager, compiled), f"bits of {width} differ when compiled")


def _bits(k: Any, width: int, shape: tuple[int, ...]) -> Any:
    return np.asarray(random_bits_p.bind(k, bit_width=width, shape=shape))


def _check_uniform(impl: PRNGImpl, name: str, words: Any) -> None:
    """Apply a chi-squared test to the bytes at each place of a word; mean 255, standard deviation 22.6."""
    for place in range(4):
        counts = np.bincount(words.view(np.uint8)[place::4], minlength=256)
        expected = _WORDS / 256
        distance = float(np.sum((counts - expected) ** 2) / expected)
        _require(
            impl,
            distance < 255 + 7 * 22.6,
            f"byte {place} of the words of {name} is not uniform (chi-squared {distance:.0f})",
        )


def _require(impl: PRNGImpl, holds: bool, what: str) -> None:
    if not holds:
        raise CheckFailure(f"generator {impl.name!r}: {what}", "impl", _HINT)


GENERATORS = Check("generators", check_generators, rule="impl", limit=1, shrinks=False)
