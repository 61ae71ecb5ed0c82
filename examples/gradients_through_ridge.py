"""Differentiate a validation loss through a fit: with respect to the penalty, and to the data.

`wl.fit_ridge` on JAX arrays is one XLA program whose derivative is that of the optimum itself, so
that a penalty for every *column* can be learned by plain gradient descent: column j is multiplied
by exp(s_j) before the fit, which divides its penalty by exp(2 s_j).
"""

import jax
import jax.numpy as jnp
import numpy as np

import wonderland as wl


def make_data(n: int = 120, d: int = 30, useful: int = 4) -> tuple[jax.Array, jax.Array]:
    """Only the first few columns matter; the others are there to be overfitted."""
    chance = np.random.default_rng(3)
    X = chance.normal(size=(n, d))
    y = X[:, :useful] @ np.linspace(1.0, 2.0, useful) + chance.normal(size=n)
    return jnp.asarray(X), jnp.asarray(y)


def main() -> None:
    X, y = make_data()
    half = len(y) // 2
    train, valid = slice(0, half), slice(half, None)

    def loss(log_alpha: jax.Array | float, scales: jax.Array) -> jax.Array:
        """Mean squared error on the validation rows of the ridge fitted to the others."""
        scaled = X * jnp.exp(scales)
        model = wl.fit_ridge(scaled[train], y[train], jnp.exp(log_alpha)).model
        return jnp.mean((y[valid] - model.predict(scaled[valid])) ** 2)

    zeros = jnp.zeros(X.shape[1])
    slope = jax.grad(loss)(0.0, zeros)
    step = 1e-5
    differences = (loss(step, zeros) - loss(-step, zeros)) / (2 * step)
    print(f"d loss / d log alpha: {slope:.8f} by jax.grad, {differences:.8f} by differences")
    assert abs(slope - differences) < 1e-6

    learn = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
    log_alpha, scales = jnp.zeros(()), zeros
    for step in range(201):
        value, (by_alpha, by_scales) = learn(log_alpha, scales)
        if step % 50 == 0:
            print(f"step {step:3d}: validation error {value:.4f}")
        log_alpha, scales = log_alpha - 0.5 * by_alpha, scales - 0.5 * by_scales
    weight = np.exp(scales)
    print("mean scale of the columns that matter:", round(float(weight[:4].mean()), 2))
    print("mean scale of the others:             ", round(float(weight[4:].mean()), 2))
    assert weight[:4].mean() > 2 * weight[4:].mean()


if __name__ == "__main__":
    # Validation losses deserve double precision; the fit itself computes in it in any case.
    with jax.enable_x64(True):  # noqa: FBT003
        main()
