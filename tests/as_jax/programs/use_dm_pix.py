"""Augment an image."""

import dm_pix as pix
import jax

image = jax.random.uniform(jax.random.key(0), (8, 8, 3))
out = jax.jit(lambda key, x: pix.random_brightness(key, pix.flip_left_right(x), 0.1))(jax.random.key(1), image)
assert out.shape == (8, 8, 3) and pix.rgb_to_hsv(image).shape == (8, 8, 3)
