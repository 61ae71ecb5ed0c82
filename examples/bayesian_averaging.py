"""What a model does not know: one fit against an average over its posterior.

Samples of a curve and a polynomial whose penalty and noise the evidence chooses; a classifier
asked about a place where it has seen nothing; a Markov chain that says whether it may be believed.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import wonderland as wl
from wonderland.trust import Effort, sample


def regression(rng: np.random.Generator) -> None:
    """The evidence chooses noise and penalty; the band widens where there are no data."""
    x = rng.uniform(-1, 1, size=(60, 1))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=60)
    model = wl.BayesianLinearRegression(basis=wl.bases.Polynomial(5)).fit(x, y)
    print(f"noise {np.sqrt(1 / model.alpha_):.2f}, as the data were made with 0.10")
    print(f"{model.evidence_['effective_parameters']}")
    for place in (0.0, 1.5):
        parts = model.uncertainty([[place]])
        low, high = model.prediction_interval([[place]])
        print(
            f"at x = {place}: 95 % of targets in [{low[0]:.2f}, {high[0]:.2f}], "
            f"{parts.epistemic_share[0]:.0%} of the variance for want of data"
        )


def classification(rng: np.random.Generator) -> None:
    """One fit is sure wherever it is asked; the average is not."""
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.7 * rng.logistic(size=60) > 0, "yes", "no")
    one = wl.LogisticRegression().fit(X, y)
    far = np.array([[8.0, 30.0]])
    print(f"one fit:   p = {one.predict_proba(far).max():.3f}")
    for method in ("laplace", "ensemble"):
        many = wl.Posterior(wl.LogisticRegression(), method=method, random_state=0).fit(X, y)
        doubt = many.uncertainty(far)
        print(
            f"{method + ':':<10} p = {many.predict_proba(far).max():.3f}, "
            f"epistemic {doubt.epistemic[0]:.2f} of {doubt.total[0]:.2f} nats"
        )


def chain() -> None:
    """Any log density: eight schools, with the parameters that its funnel asks for."""
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def log_density(theta: Any, effects: Any, errors: Any) -> Any:
        spread = jnp.exp(theta["log_tau"])
        schools = theta["mean"] + spread * theta["z"]
        likelihood = -0.5 * (((effects - schools) / errors) ** 2).sum()
        prior = -0.5 * (theta["z"] ** 2).sum() - 0.5 * (theta["mean"] / 5.0) ** 2
        # Half-Cauchy(5) for tau, and the derivative of tau in its logarithm.
        return likelihood + prior - jnp.log1p((spread / 5.0) ** 2) + theta["log_tau"]

    start = {"log_tau": np.array(1.0), "mean": np.array(0.0), "z": np.zeros(8)}
    effort = Effort(draws=1000, warmup=500, acceptance=0.95)
    found = sample(log_density, start, 0, data=(effects, errors), effort=effort)
    row = found.summary.names.index("mean")
    print(f"mean effect {found.summary.mean[row]:.1f} ± {found.summary.sd[row]:.1f}")
    print(f"R̂ at most 1.01: {found.evidence['rhat'].holds}")


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    regression(generator)
    classification(generator)
    try:
        import blackjax  # noqa: F401  # the optional extra `sample`
    except ImportError:
        print("the chain needs: pip install 'wonderland[sample]'")
    else:
        chain()
