"""PyTorch as the oracle of layers: the same weights, the same numbers, the same gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wonderland import nn
from wonderland.testing.layers import trained_batch

torch = pytest.importorskip("torch")


def close(ours, theirs):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nn.relu, torch.nn.ReLU()),
        (nn.LeakyReLU(0.2), torch.nn.LeakyReLU(0.2)),
        (nn.PReLU(5), torch.nn.PReLU(5)),
        (nn.sigmoid, torch.nn.Sigmoid()),
        (nn.softplus, torch.nn.Softplus()),
        (nn.ELU(0.5), torch.nn.ELU(0.5)),
        (nn.gelu, torch.nn.GELU()),
        (nn.silu, torch.nn.SiLU()),
        (nn.tanh, torch.nn.Tanh()),
    ],
    ids=lambda part: getattr(part, "__name__", type(part).__name__),
)
def test_activations(ours, theirs, rng):
    X = (4 * rng.normal(size=(7, 5))).astype(np.float32)
    X[0] = 0.0
    X[1] = 1e4
    X[2] = -1e4
    given = torch.tensor(X, requires_grad=True)
    made = theirs(given)
    made.sum().backward()
    close(jax.vmap(ours)(X), made)
    close(jax.grad(lambda X: jax.vmap(ours)(X).sum())(jnp.asarray(X)), given.grad)


def network(norm):
    ours = nn.MLP((4, 6, 3), "relu", norm=norm, key=0)
    kind = {"batch": torch.nn.BatchNorm1d, "layer": torch.nn.LayerNorm}[norm]
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 6), kind(6), torch.nn.ReLU(), torch.nn.Linear(6, 3)
    )
    with torch.no_grad():
        for layer, linear in zip((theirs[0], theirs[3]), ours.linears, strict=True):
            layer.weight.copy_(torch.tensor(np.asarray(linear.weight).T))
            layer.bias.copy_(torch.tensor(np.asarray(linear.bias)))
    return ours, theirs


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_training_and_inference_with_norms(norm, rng):
    ours, theirs = network(norm)
    for _ in range(3):
        X = rng.normal(size=(8, 4)).astype(np.float32) * 2 + 1
        Y, ours = trained_batch(ours, X, jax.random.key(0))
        close(Y, theirs(torch.tensor(X)))
    theirs.eval()
    close(jax.vmap(ours)(X), theirs(torch.tensor(X)))


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_gradients_through_norms(norm, rng):
    ours, theirs = network(norm)
    X = rng.normal(size=(8, 4)).astype(np.float32)
    (theirs(torch.tensor(X)) ** 2).mean().backward()
    parameters, rest = nn.partition(ours)

    def loss(parameters):
        return jnp.mean(trained_batch(eqx.combine(parameters, rest), X, jax.random.key(0))[0] ** 2)

    slopes = jax.grad(loss)(parameters)
    close(slopes.linears[0].weight.T, theirs[0].weight.grad)
    close(slopes.linears[1].bias, theirs[3].bias.grad)
    close(slopes.body.layers[1].scale, theirs[1].weight.grad)


def test_embedding(rng):
    ours, theirs = nn.Embedding(5, 3, key=0), torch.nn.Embedding(5, 3)
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(np.asarray(ours.table)))
    index = rng.integers(0, 5, size=9)
    close(jax.vmap(ours)(index), theirs(torch.tensor(index)))
    slope = jax.grad(lambda model: (jax.vmap(model)(index) ** 2).sum())(ours).table
    (theirs(torch.tensor(index)) ** 2).sum().backward()
    close(slope, theirs.weight.grad)
