"""The same model in PyTorch: a module of `torch.nn`."""

from __future__ import annotations

import numpy as np
import torch
from data import Trained, initial_parameters, minibatches

import corejax
from corejax.extend import find_primitive

toeplitz = corejax.to_torch(find_primitive("toeplitz.matvec"))
recurrence = corejax.to_torch(find_primitive("linear_recurrence.linear_recurrence"), reverse=False)


class Sequences(torch.nn.Module):
    """A long convolution, then a linear recurrence for each channel; the classes are read from their last states."""

    def __init__(self) -> None:
        super().__init__()
        for name, value in initial_parameters().items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(value)))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of the ten digits for images of shape `(n, 64)`."""
        signal = torch.tanh(toeplitz(self.filters[None], images[:, None]))
        decay = torch.sigmoid(self.decay)[:, None].expand(signal.shape)
        states = recurrence(decay, (1 - decay) * signal)
        features = torch.cat([states[..., -1], states[..., 31]], 1)
        return features @ self.weights + self.bias


def train(images: np.ndarray, labels: np.ndarray, epochs: int, rate: float) -> Trained:
    """Return the loss of each step, and the function from images to digits."""
    model = Sequences()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    xs, ys = torch.from_numpy(images), torch.from_numpy(labels)
    losses = []
    for batch in minibatches(len(labels), 64, epochs):
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(model(xs[batch]), ys[batch])
        value.backward()
        optimizer.step()
        losses.append(value.item())

    def predict(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(torch.from_numpy(images)).argmax(1).numpy()

    return losses, predict
