"""A two-layer network whose layers are dataclass pytrees."""

from dataclasses import dataclass, field, replace

import corejax
import corejax.numpy as jnp
from corejax import Array, nn, random
from corejax.nn import initializers


@corejax.tree_util.register_dataclass
@dataclass
class Dense:
    kernel: Array
    bias: Array
    activate: bool = field(default=True, metadata={"static": True})

    @classmethod
    def create(cls, key: Array, inputs: int, outputs: int, activate: bool = True) -> "Dense":
        kernel = initializers.lecun_normal()(key, (inputs, outputs), jnp.float32)
        return cls(kernel, jnp.zeros(outputs), activate)

    def __call__(self, x: Array) -> Array:
        x = x @ self.kernel + self.bias
        return nn.gelu(x) if self.activate else x


@corejax.tree_util.register_dataclass
@dataclass
class MLP:
    layers: list[Dense]

    def __call__(self, x: Array, *, key: Array | None = None, rate: float = 0.0) -> Array:
        for layer in self.layers[:-1]:
            x = layer(x)
            if key is not None:
                key, mask_key = random.split(key)
                x = jnp.where(random.bernoulli(mask_key, 1 - rate, x.shape), x / (1 - rate), 0.0)
        return self.layers[-1](x)


def loss_fn(model: MLP, x: Array, y: Array) -> tuple[Array, dict[str, Array]]:
    logits = corejax.vmap(model)(x)
    losses = -jnp.sum(nn.one_hot(y, 3) * nn.log_softmax(logits), axis=-1)
    return losses.mean(), {"accuracy": jnp.mean(logits.argmax(-1) == y)}


@corejax.jit
def train_step(model: MLP, x: Array, y: Array) -> tuple[MLP, Array]:
    (loss, metrics), grads = corejax.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    del metrics
    model = corejax.tree.map(lambda p, g: p - 0.1 * g, model, grads)
    return model, loss


keys = random.split(random.key(0), 3)
model = MLP([Dense.create(keys[0], 4, 8), Dense.create(keys[1], 8, 3, activate=False)])
inputs = random.normal(keys[2], (16, 4))
targets = jnp.arange(16) % 3
loss, metrics = loss_fn(model, inputs, targets)
for _ in range(3):
    model, loss = train_step(model, inputs, targets)
shapes = corejax.eval_shape(model, inputs)
frozen = replace(model, layers=[replace(layer, bias=jnp.zeros_like(layer.bias)) for layer in model.layers])
count = sum(leaf.size for leaf in corejax.tree.leaves(frozen))
print(f"{loss:.3f}", metrics["accuracy"], float(loss), shapes.shape, count, model(inputs, key=keys[0], rate=0.5).shape)
