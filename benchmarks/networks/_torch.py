"""The training loop of a PyTorch user: shuffled minibatches, Adam, eager or compiled."""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["fit", "loop"]


def network(sizes: Sequence[int]) -> Any:
    import torch

    layers: list[Any] = []
    for i, o in pairwise(sizes):
        layers += [torch.nn.Linear(i, o), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def fit(net: Any, forward: Any, X: Any, y: Any, batch: int, epochs: int, rate: float) -> float:
    """Train; the mean loss of the last epoch."""
    import torch

    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    loss_of = torch.nn.CrossEntropyLoss()
    total = torch.zeros(())
    for _ in range(epochs):
        total = torch.zeros(())
        places = torch.randperm(len(X))
        for low in range(0, len(X), batch):
            rows = places[low : low + batch]
            optimizer.zero_grad()
            loss = loss_of(forward(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(rows)
    return float(total) / len(X)


def loop(
    sizes: Sequence[int],
    X: np.ndarray,
    y: np.ndarray,
    batch: int,
    epochs: int,
    weights: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
    *,
    compiled: bool,
    threads: int = os.cpu_count() or 1,
) -> Callable[[], float]:
    """A run from the same weights (in, out), biases each time; compiled once.

    Small steps are faster on one thread.
    """
    import torch

    given, classes = torch.tensor(X), torch.tensor(y).long()
    net = network(sizes)
    for layer, (weight, bias) in zip(net[::2], weights or (), strict=weights is not None):
        layer.weight.data, layer.bias.data = torch.tensor(weight.T), torch.tensor(bias)
    start = {name: value.clone() for name, value in net.state_dict().items()}
    forward = torch.compile(net) if compiled else net

    def run() -> float:
        torch.set_num_threads(threads)
        net.load_state_dict(start)
        return fit(net, forward, given, classes, batch, epochs, 1e-3)

    return run
