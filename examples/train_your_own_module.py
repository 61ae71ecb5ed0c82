"""A researcher's own Equinox module, trained by the library's loop: no estimator, no boilerplate.

A network with a skip connection and dropout learns a ring of points; early stopping gives back
the best weights, a snapshot would survive a crash, and sixteen learning rates are tried at once.
Saves `training.png` into the folder given as argument (default: here) when matplotlib is there.
"""

import importlib.util
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import wonderland as wl
from wonderland.training import Recipe, Stopping, claims, fit_many, spectrum


class Skip(eqx.Module):
    """h(x) = W₂ relu(W₁x) + Vx, a function of ONE sample; the loop derives the batch."""

    hidden: eqx.nn.Linear
    out: eqx.nn.Linear
    beside: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __init__(self, width: int, *, key: jax.Array) -> None:
        one, two, three = jax.random.split(key, 3)
        self.hidden = eqx.nn.Linear(2, width, key=one)
        self.out = eqx.nn.Linear(width, 2, key=two)
        self.beside = eqx.nn.Linear(2, 2, key=three)
        self.dropout = eqx.nn.Dropout(0.1)

    def __call__(self, x: jax.Array, *, key: jax.Array | None = None) -> jax.Array:
        """The two scores of one point; with a key as in training, without as at inference."""
        h = self.dropout(jax.nn.relu(self.hidden(x)), key=key)
        return self.out(h) + self.beside(x)


def ring(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inside or outside of a circle that halves the square's mass."""
    X = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    return X, (np.square(X).sum(axis=1) > 1.39).astype(np.int32)


def logistic(z: jax.Array, y: jax.Array) -> jax.Array:
    """ℓ(z, y) = log(1 + exp z) − yz."""
    return jnp.logaddexp(0.0, z) - y * z


def main(folder: str = ".") -> None:
    train, validation = ring(2000, 0), ring(500, 1)
    recipe = Recipe(
        epochs=60,
        batch_size=64,
        optimizer="adamw",
        learning_rate=3e-3,
        schedule="warmup_cosine",
        clip=1.0,
        score="accuracy",
        stopping=Stopping(patience=15),
    )
    model = Skip(64, key=jax.random.key(0))
    found = wl.train(model, "cross_entropy", train, recipe=recipe, validation=validation)
    print(found.ended.sentence)
    print(claims(found.evidence))

    # Sixteen learning rates in one program, each as it would be alone.
    rates = np.logspace(-4, 0, 16)
    models = [Skip(64, key=jax.random.key(0)) for _ in rates]
    many = fit_many(
        models,
        "cross_entropy",
        train,
        recipe=recipe,
        numbers={"learning_rate": rates},
        validation=validation,
    )
    scores = np.nanmax(many.evidence["history"].score, axis=0)
    print("\nlearning rate  best accuracy")
    for rate, score in list(zip(rates, scores, strict=True))[::3]:
        print(f"{rate:13.2g}  {score:13.3f}")

    # A linear model's stationary point is a minimum: the ends of its Hessian's spectrum say so.
    start = eqx.nn.Linear(2, "scalar", key=jax.random.key(2))
    line = wl.train(start, logistic, train, optimizer="lbfgs", epochs=50)
    print(f"\ngradient norm of a linear model: {line.evidence['gradient_norm']:.1e}")
    print(spectrum(line.model, logistic, train).sentence)

    if importlib.util.find_spec("matplotlib"):
        from wonderland.report.training_plots import plot_training

        figure = plot_training(found.evidence["history"])
        figure.savefig(Path(folder) / "training.png", dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
