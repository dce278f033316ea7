"""Train a model; KERAS_BACKEND is jax."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

model = keras.Sequential([keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
history = model.fit(x, x.sum(1), epochs=5, verbose=0).history["loss"]
assert history[-1] < history[0] and model.predict(x, verbose=0).shape == (64, 1)
