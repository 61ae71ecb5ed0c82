"""XOR, which no line separates: nine weights that do it, a hundred networks that find their own.

    f(x) = ⟨relu(Ux + c), w⟩ + b,   U = [[1, 1], [1, 1]], c = (0, −1), w = (2, −4), b = −1

is positive at (0, 1) and (1, 0) and negative at (0, 0) and (1, 1). Then a network of eight hidden
neurons is trained from each of 100 seeds, all of them in one compiled program.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from wonderland import nn
from wonderland.training.many import fit_many

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], np.float32)
BITS = np.array([[0.0], [1.0], [1.0], [0.0]], np.float32)
SEEDS = 100


def nine_weights() -> nn.Sequential:
    """The network of the textbook; its layers hold W = Uᵀ, x ↦ xW + b."""
    first, last = nn.MLP((2, 2, 1), key=0).linears
    layers = [
        eqx.tree_at(lambda net: (net.weight, net.bias), layer, (jnp.array(W), jnp.array(b)))
        for layer, W, b in (
            (first, [[1.0, 1.0], [1.0, 1.0]], [0.0, -1.0]),
            (last, [[2.0], [-4.0]], [-1.0]),
        )
    ]
    return nn.Sequential([layers[0], nn.relu, layers[1]])


def main() -> None:
    """Evaluate the nine weights, then learn from every seed."""
    scores = jax.vmap(nine_weights())(X)[:, 0]
    print("nine weights give", scores.tolist(), "so that the signs are those of XOR")
    if not np.array_equal(scores > 0, BITS[:, 0] > 0):
        raise SystemExit("the nine weights do not reproduce XOR")

    networks = [nn.MLP((2, 8, 1), "tanh", initialiser="glorot", key=s) for s in range(SEEDS)]
    found = fit_many(
        networks,
        "binary_cross_entropy",
        (X, BITS),
        epochs=400,
        batch_size=4,
        optimizer="adam",
        learning_rate=0.05,
    )
    arrays, rest = eqx.partition(found.model, eqx.is_array)
    scores = jax.vmap(lambda own: jax.vmap(eqx.combine(own, rest))(X))(arrays)
    right = np.all((np.asarray(scores) > 0) == (BITS > 0), axis=(1, 2))
    print(
        f"learnt from {right.sum()} of {SEEDS} seeds; "
        f"largest final loss {found.evidence['history'].loss[-1].max():.1e}"
    )
    if not right.all():
        raise SystemExit("some seed has not learnt XOR")


if __name__ == "__main__":
    main()
