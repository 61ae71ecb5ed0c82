"""Small tasks and networks that the tests of training share."""

import equinox as eqx
import jax
import numpy as np


def task(rng, n=200, d=5):
    """Two classes that no plane separates."""
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int32)


def network(seed=0, d=5, width=8, outputs=2):
    return eqx.nn.MLP(d, outputs, width, 1, key=jax.random.key(seed))


def flat(model):
    """All arrays of a model in one vector."""
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
    return np.concatenate([np.asarray(leaf).ravel() for leaf in leaves])
