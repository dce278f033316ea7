"""scan with a NamedTuple as the carry, while_loop, cond, switch and associative_scan."""

from typing import NamedTuple

import corejax
import corejax.numpy as jnp
from corejax import Array, lax, random


class Carry(NamedTuple):
    position: Array
    velocity: Array
    step: int | Array = 0


class Output(NamedTuple):
    energy: Array
    position: Array


def force(position: Array) -> Array:
    return -position


def move(carry: Carry, noise: Array) -> tuple[Carry, Output]:
    velocity = carry.velocity + 0.1 * (force(carry.position) + noise)
    position = carry.position + 0.1 * velocity
    energy = 0.5 * (velocity @ velocity + position @ position)
    return Carry(position, velocity, carry.step + 1), Output(energy, position)


@corejax.jit
def simulate(key: Array, start: Carry) -> tuple[Carry, Output]:
    return lax.scan(move, start, 0.1 * random.normal(key, (20, 2)))


def rows(carry: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
    weight, bias = row
    return jnp.tanh(weight * carry + bias), None


def collatz(n: int) -> Array:
    def following(state: tuple[Array, Array]) -> tuple[Array, Array]:
        number, count = state
        return jnp.where(number % 2 == 0, number // 2, 3 * number + 1), count + 1

    _, count = lax.while_loop(lambda state: state[0] != 1, following, (jnp.asarray(n), jnp.asarray(0)))
    return count


def absolute(x: Array) -> Array:
    return lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)


last, outputs = simulate(random.key(0), Carry(jnp.ones(2), jnp.zeros(2)))
final, nothing = lax.scan(rows, jnp.zeros(()), (jnp.ones(4), jnp.ones(4)))
total = lax.fori_loop(0, 10, lambda i, c: c + i, 0)
sums = lax.associative_scan(jnp.add, jnp.arange(5))
chosen = lax.switch(1, [jnp.sin, jnp.cos], jnp.zeros(3))
squares = lax.map(lambda v: v**2, jnp.arange(4.0))
folded = [random.fold_in(random.key(1), i) for i in range(3)]
draws = corejax.vmap(lambda key: random.uniform(key, (2,), minval=-1))(jnp.stack(folded))
best = outputs.position[outputs.energy.argmin()]
print(last.position.shape, outputs.energy[-1], nothing, final.shape, int(total), sums, chosen, squares[::2])
print(collatz(7).item(), absolute(-jnp.ones(2)).tolist(), draws.max(axis=0), best.at[0].add(1.0), last.step)
