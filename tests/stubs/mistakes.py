"""Forty mistakes, one a line that ends with a mark; type checkers have to report nearly all of them."""

import corejax
import corejax.numpy as jnp
from corejax import lax, nn, random
from corejax.scipy import special, stats


def loss(w: corejax.Array, x: corejax.Array) -> corejax.Array:
    return jnp.sum((w - x) ** 2)


@corejax.jit
def step(w: corejax.Array, rate: float) -> corejax.Array:
    return w - rate * corejax.grad(loss)(w, w)


@corejax.custom_jvp
def softplus(x: corejax.Array) -> corejax.Array:
    return jnp.log1p(jnp.exp(x))


x = jnp.arange(6.0).reshape(2, 3)
key = random.key(0)

jnp.sine(x)  # mistake: a name
corejax.gradd(loss)  # mistake: a name
jnp.linalg.slove(x, x)  # mistake: a name
lax.scann(lambda c, a: (c, a), 0, x)  # mistake: a name
random.norml(key, (3,))  # mistake: a name
nn.rellu(x)  # mistake: a name
special.gamaln(x)  # mistake: a name
corejax.tree.mapp(jnp.sin, x)  # mistake: a name
jnp.fft.ftt(x)  # mistake: a name
corejax.array([1])  # mistake: a name of corejax.numpy
x.summ()  # mistake: a method
x.at[0].sett(1)  # mistake: a method
x.shappe  # mistake: an attribute
x.at.set(1)  # mistake: no index
step.lowr(x, 1.0)  # mistake: a method of a jitted function
softplus.defjpv(lambda p, t: (p, t))  # mistake: a method
jnp.sum(x, axes=1)  # mistake: an argument's name
jnp.zeros(3, dype=jnp.float32)  # mistake: an argument's name
corejax.jit(loss, static_argnum=0)  # mistake: an argument's name
corejax.vmap(loss, in_axis=0)  # mistake: an argument's name
corejax.grad(loss, argnum=1)  # mistake: an argument's name
random.normal(key, shapes=(3,))  # mistake: an argument's name
lax.fori_loop(0, 3, body=lambda i, c: c, init_val=x)  # mistake: an argument's name
x.mean(dim=0)  # mistake: an argument's name
stats.norm.logpdf(x, mean=0.0)  # mistake: an argument's name
nn.softmax(x, dim=1)  # mistake: an argument's name
jnp.linalg.svd(x, full=False)  # mistake: an argument's name
step(x, learning_rate=0.1)  # mistake: an argument's name, through jit
corejax.grad(loss)(x, y=x)  # mistake: an argument's name, through grad
jnp.zeros("3")  # mistake: a type
jnp.sin("1.0")  # mistake: a type
jnp.sum([1, 2, 3])  # mistake: a list in place of an array
jnp.zeros(3.5)  # mistake: a type
jnp.sum(x, keepdims="yes")  # mistake: a type
step(x, "0.1")  # mistake: a type, through jit
corejax.vmap(loss)(x)  # mistake: an argument is missing, through vmap
softplus(x, x)  # mistake: an argument too many, through custom_jvp
x + "1"  # mistake: a type
corejax.value_and_grad(loss)(x, x) + 1  # mistake: a pair is no number
len(step(x, 0.1).sum().item("0"))  # mistake: a type
