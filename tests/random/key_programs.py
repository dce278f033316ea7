"""Programs that use keys once or twice, for jax and corejax alike: each takes the module, its numpy, random and lax."""

import types

import numpy as np

REUSED = {}  # by name: programs that use a key twice
RIGHT = {}


def reuses(program):
    REUSED[program.__name__] = program
    return program


def right(program):
    RIGHT[program.__name__] = program
    return program


def modules(xp):
    """What programs are written with: `m.jit`, `m.random`, `m.np`, `m.lax`."""
    return types.SimpleNamespace(
        jit=xp.jit, vmap=xp.vmap, grad=xp.grad, checkpoint=xp.checkpoint, np=xp.numpy, random=xp.random, lax=xp.lax
    )


def bits_of_each(m, keys):
    return m.vmap(m.random.bits)(keys)


# -- one after the other -------------------------------------------------------------------------------------------


@reuses
def drawn_twice(m):
    key = m.random.key(0)
    return m.random.normal(key), m.random.uniform(key)


@reuses
def split_and_drawn(m):
    key = m.random.key(0)
    return m.random.split(key), m.random.normal(key)


@reuses
def drawn_and_split(m):
    key = m.random.key(0)
    return m.random.normal(key), m.random.split(key)


@reuses
def many_numbers(m):
    key = m.random.key(0)
    return m.random.normal(key, (1000,)), m.random.bits(key, (1000,))


@reuses
def gamma_twice(m):
    key = m.random.key(0)
    return m.random.gamma(key, 2.0), m.random.gamma(key, 2.0)


@reuses
def cloned_key_twice(m):
    key = m.random.clone(m.random.key(0))
    return m.random.bits(key), m.random.bits(key)


@reuses
def folded_key_twice(m):
    key = m.random.fold_in(m.random.key(0), 1)
    return m.random.bits(key), m.random.bits(key)


@reuses
def wrapped_key_twice(m):
    key = m.random.wrap_key_data(np.zeros(2, np.uint32))
    return m.random.bits(key), m.random.bits(key)


@right
def cloned(m):
    key = m.random.key(0)
    return m.random.normal(key), m.random.normal(m.random.clone(key))


@right
def folded(m):
    key = m.random.key(0)
    return [m.random.normal(m.random.fold_in(key, i)) for i in range(3)], m.random.normal(key)


@right
def looked_at(m):
    key = m.random.key(0)
    return m.random.normal(key), m.random.key_data(key), repr(key), key == key, m.random.key_impl(key)


@right
def split_and_unpacked(m):
    first, second = m.random.split(m.random.key(0))
    return m.random.normal(first), m.random.normal(second)


@right
def wrapped_again(m):
    key = m.random.key(0)
    return m.random.bits(key), m.random.bits(m.random.wrap_key_data(m.random.key_data(key)))


@right
def without_keys(m):
    keys = m.random.split(m.random.key(0), 0)
    return bits_of_each(m, keys), bits_of_each(m, keys)


# -- keys that are moved -------------------------------------------------------------------------------------------


@reuses
def reshaped(m):
    key = m.random.key(0)
    return m.random.bits(key), bits_of_each(m, key.reshape(1))


@reuses
def reshaped_first(m):
    key = m.random.key(0)
    return bits_of_each(m, m.np.reshape(key, (1,))), m.random.bits(key)


@reuses
def squeezed(m):
    keys = m.random.split(m.random.key(0), 1)
    return m.random.bits(m.np.squeeze(keys)), bits_of_each(m, keys)


@reuses
def broadcast(m):
    key = m.random.key(0)
    return m.random.bits(key), bits_of_each(m, m.np.broadcast_to(key, (3,)))


@reuses
def same_element(m):
    keys = m.random.split(m.random.key(0), 3)
    return m.random.bits(keys[0]), m.random.bits(keys[0])


@reuses
def element_and_slice(m):
    keys = m.random.split(m.random.key(0), 4)
    return m.random.bits(keys[1]), bits_of_each(m, keys[:2])


@reuses
def slices_that_overlap(m):
    keys = m.random.split(m.random.key(0), 4)
    return bits_of_each(m, keys[:3]), bits_of_each(m, keys[2:])


@reuses
def element_and_all(m):
    keys = m.random.split(m.random.key(0), 4)
    return m.random.bits(keys[3]), bits_of_each(m, keys)


@reuses
def all_and_element(m):
    keys = m.random.split(m.random.key(0), 4)
    return bits_of_each(m, keys), m.random.bits(keys[-1])


@reuses
def unpacked_and_all(m):
    keys = m.random.split(m.random.key(0))
    first, _ = keys
    return m.random.bits(first), bits_of_each(m, keys)


@reuses
def joined(m):
    first, second = m.random.split(m.random.key(0))
    return m.random.bits(first), bits_of_each(m, m.np.stack([first, second]))


@reuses
def concatenated(m):
    keys = m.random.split(m.random.key(0), 4)
    return bits_of_each(m, m.np.concatenate([keys[:2], keys[3:]])), m.random.bits(keys[3])


@right
def elements(m):
    keys = m.random.split(m.random.key(0), 4)
    return [m.random.bits(keys[i]) for i in range(4)]


@right
def slices(m):
    keys = m.random.split(m.random.key(0), 4)
    return bits_of_each(m, keys[:2]), bits_of_each(m, keys[2:])


@right
def iterated(m):
    return [m.random.bits(key) for key in m.random.split(m.random.key(0), 3)]


# -- compiled functions --------------------------------------------------------------------------------------------


@reuses
def jitted_twice(m):
    key, draw = m.random.key(0), m.jit(m.random.bits)
    return draw(key), draw(key)


@reuses
def drawn_and_jitted(m):
    key = m.random.key(0)
    return m.random.bits(key), m.jit(lambda k: m.random.uniform(k))(key)


@reuses
def inside_jit(m):
    return m.jit(lambda k: m.random.bits(k) + m.random.bits(k))(m.random.key(0))


@reuses
def made_inside_jit(m):
    def f():
        key = m.random.key(0)
        return m.random.bits(key) + m.random.bits(key)

    return m.jit(f)()


@reuses
def closed_over(m):
    key = m.random.key(0)
    f = m.jit(lambda x: x + m.random.normal(key))
    return f(1.0), f(1.0)


@reuses
def jit_in_jit(m):
    return m.jit(lambda k: (m.jit(m.random.bits)(k), m.jit(m.random.bits)(k)))(m.random.key(0))


@reuses
def used_and_returned(m):
    _, key = m.jit(lambda k: (m.random.bits(k), k))(m.random.key(0))
    return m.random.bits(key)


@reuses
def returned_and_used(m):
    key = m.random.key(0)
    return m.random.bits(m.jit(lambda k: k)(key)), m.random.bits(key)


@reuses
def part_in_jit(m):
    keys = m.random.split(m.random.key(0))
    return m.jit(lambda k: m.random.bits(k[0]))(keys), m.random.bits(keys[0])


@reuses
def split_in_jit(m):
    keys = m.jit(m.random.split)(m.random.key(0))
    return m.random.bits(keys[0]), m.random.bits(keys[0])


@right
def parts_in_jit(m):
    keys = m.random.split(m.random.key(0))
    return m.jit(lambda k: m.random.bits(k[0]))(keys), m.random.bits(keys[1])


@right
def new_keys_of_jit(m):
    key, other = m.jit(m.random.split)(m.random.key(0))
    return m.random.bits(key), m.jit(m.random.bits)(other)


@right
def not_used_in_jit(m):
    key = m.random.key(0)
    return m.jit(lambda k: m.random.key_data(k))(key), m.random.bits(key)


@right
def jitted_steps(m):
    step = m.jit(lambda k: m.random.split(k))
    key, drawn = m.random.key(0), []
    for _ in range(3):
        key, now = step(key)
        drawn.append(m.random.normal(now))
    return drawn


# -- branches and loops --------------------------------------------------------------------------------------------


@reuses
def in_a_branch(m):
    key = m.random.key(0)
    return m.lax.cond(True, lambda k: m.random.uniform(k), lambda k: 1.0, key), m.random.uniform(key)


@reuses
def in_the_other_branch(m):
    key = m.random.key(0)
    return m.lax.cond(False, lambda k: m.random.uniform(k), lambda k: 1.0, key), m.random.uniform(key)


@reuses
def within_a_branch(m):
    return m.lax.cond(True, lambda k: m.random.uniform(k) + m.random.normal(k), lambda k: 1.0, m.random.key(0))


@reuses
def jitted_branch(m):
    def f(key, x):
        return m.lax.cond(x > 0, m.random.uniform, lambda k: 1.0, key) + m.random.uniform(key)

    return m.jit(f)(m.random.key(0), 1.0)


@reuses
def in_each_step(m):
    key = m.random.key(0)
    return m.lax.fori_loop(0, 3, lambda i, x: x + m.random.uniform(key), 0.0)


@reuses
def in_each_step_of_while(m):
    key = m.random.key(0)
    return m.lax.while_loop(lambda x: x < 2, lambda x: x + 1 + 0 * m.random.uniform(key), 0.0)


@reuses
def handed_on(m):
    return m.lax.scan(lambda k, _: (k, m.random.bits(k)), m.random.key(0), None, length=3)


@reuses
def handed_on_by_while(m):
    def body(carry):
        return carry[0], carry[1] + 1 + 0 * m.random.uniform(carry[0])

    return m.lax.while_loop(lambda carry: carry[1] < 2, body, (m.random.key(0), 0.0))


@reuses
def after_a_scan(m):
    key = m.random.key(0)
    return m.lax.scan(lambda k, _: (m.random.split(k, 1)[0], None), key, None, length=3), m.random.bits(key)


@reuses
def scanned_keys(m):
    keys = m.random.split(m.random.key(0), 4)
    return m.lax.scan(lambda c, k: (c, m.random.bits(k)), 0, keys), m.random.bits(keys[2])


@reuses
def jitted_scan(m):
    def f(key):
        return m.lax.scan(lambda c, _: (c + m.random.uniform(key), None), 0.0, None, length=3)

    return m.jit(f)(m.random.key(0))


@reuses
def mapped_twice(m):
    keys = m.random.split(m.random.key(0), 3)
    return bits_of_each(m, keys), m.vmap(lambda k: m.random.uniform(k))(keys)


@reuses
def within_a_map(m):
    return m.vmap(lambda k: m.random.bits(k) + m.random.bits(k))(m.random.split(m.random.key(0), 3))


@reuses
def in_a_gradient(m):
    key = m.random.key(0)
    return m.grad(lambda x: x * m.random.normal(key) * m.random.uniform(key))(1.0)


@right
def branches_of_one_key(m):
    return m.lax.cond(True, m.random.uniform, m.random.normal, m.random.key(0))


@right
def folded_in_each_step(m):
    key = m.random.key(0)
    return m.lax.fori_loop(0, 3, lambda i, x: x + m.random.uniform(m.random.fold_in(key, i)), 0.0)


@right
def new_in_each_step(m):
    def step(key, _):
        key, now = m.random.split(key)
        return key, m.random.bits(now)

    key, _ = m.lax.scan(step, m.random.key(0), None, length=3)
    return m.random.bits(key)


@right
def new_in_each_step_of_while(m):
    def body(carry):
        key, now = m.random.split(carry[0])
        return key, carry[1] + 1 + 0 * m.random.uniform(now)

    return m.random.bits(m.lax.while_loop(lambda carry: carry[1] < 2, body, (m.random.key(0), 0.0))[0])


@right
def keys_of_steps(m):
    keys = m.random.split(m.random.key(0), 4)
    return m.lax.scan(lambda c, k: (c, m.random.bits(k)), 0, keys)


@right
def rematerialised(m):
    def f(x, key):
        return m.np.sum(m.np.sin(x) * m.random.bernoulli(key, 0.5, x.shape))

    return m.grad(m.checkpoint(f))(m.np.ones(3), m.random.key(0))


@right
def gradient(m):
    key = m.random.key(0)
    return m.jit(m.grad(lambda x: x * m.random.normal(key)))(1.0)
