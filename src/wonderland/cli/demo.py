"""`wonderland demo`: what a fit is here, on data that ships with scikit-learn."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wonderland as wl
from wonderland.cli.layout import coefficient_table, evidence_table, number, section, table
from wonderland.shell.samples import Sample, diabetes

__all__ = ["run"]

SHOWN = 5  # patients whose predictions are printed


def run(write: Callable[[str], Any] = print) -> None:
    """Write the demo, part by part as it is computed."""
    sample = diabetes()
    write(f"{sample.name}.\n{len(sample.y)} patients to learn from, {len(sample.y_test)} to test.")
    for part in (_least_squares, _penalties, _descent, _derivative, _comparison):
        for text in part(sample):
            write(f"\n{text}")


def _least_squares(sample: Sample) -> Iterator[str]:
    """Coefficients with errors, evidence from fit and test, intervals that cover."""
    model = wl.LinearRegression().fit(sample.X, sample.y)
    yield section(
        "wl.LinearRegression().fit(X, y): coefficients and their standard errors",
        coefficient_table(model, sample.features),
    )
    found = wl.verify(model, sample.X_test, sample.y_test)
    yield section(
        "model.evidence_ after wl.verify(model, X_test, y_test)", evidence_table(found.values())
    )
    low, high = model.prediction_interval(sample.X_test[:SHOWN])
    columns = zip(model.predict(sample.X_test[:SHOWN]), low, high, sample.y_test, strict=False)
    rows = [[f"patient {i}", *(f"{v:.0f}" for v in row)] for i, row in enumerate(columns, 1)]
    yield section(
        "model.prediction_interval(X_test): the first patients of the test",
        table(["", "predicted", "95% interval from", "to", "happened"], rows),
    )


def _penalties(sample: Sample) -> Iterator[str]:
    """Two ways to choose α by the exact leave-one-out error."""
    path = wl.Ridge("loo").fit(sample.X, sample.y)
    tuned = wl.Ridge("gradient").fit(sample.X, sample.y)
    rows = [
        [f'Ridge("{m.alpha}")', number(m.alpha_), f"{m.evidence_['leave_one_out_error'].value:.6g}"]
        for m in (path, tuned)
    ]
    yield section(
        'wl.Ridge("loo"), wl.Ridge("gradient"): alpha by the exact leave-one-out error',
        table(["", "alpha_", "leave-one-out error"], rows),
    )


def _descent(sample: Sample) -> Iterator[str]:
    """Gradient descent beside its theorem."""
    direct = wl.LinearRegression().fit(sample.X, sample.y)
    model = wl.LinearRegression(solver="descent", tol=1e-10).fit(sample.X, sample.y)
    names = ("lipschitz", "strong_convexity", "iterations", "gradient_norm")
    apart = np.max(np.abs(model.coef_ - direct.coef_) / np.abs(direct.coef_))
    yield section(
        'wl.LinearRegression(solver="descent"): steps taken, and the theorem\'s bound on them',
        evidence_table(model.evidence_[name] for name in names),
        f"largest relative difference from the direct solution: {apart:.1e}",
    )


def _derivative(sample: Sample) -> Iterator[str]:
    """The derivative of a test error with respect to the penalty, through the fit."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):  # noqa: FBT003
        X, y = jnp.asarray(sample.X), jnp.asarray(sample.y)
        X_test, y_test = jnp.asarray(sample.X_test), jnp.asarray(sample.y_test)

        def error(alpha: Any) -> Any:
            model = wl.fit_ridge(X, y, alpha).model
            return jnp.mean((y_test - model.predict(X_test)) ** 2)

        exact, step = float(jax.grad(error)(1.0)), 1e-4
        differences = float(error(1.0 + step) - error(1.0 - step)) / (2 * step)
    yield section(
        "jax.grad through wl.fit_ridge: how the test error changes with alpha, at alpha = 1",
        f"{exact:.6g} by jax.grad, {differences:.6g} by central differences",
    )


def _comparison(sample: Sample) -> Iterator[str]:
    """Models and bases on the same test patients."""
    scaled = _standardised(sample)
    squares = _quadratic(wl.LinearRegression())
    models = {
        "LinearRegression()": (wl.LinearRegression(), sample),
        'Ridge("loo")': (wl.Ridge("loo"), scaled),
        "LinearRegression(basis=Polynomial(2))": (squares, sample),
        'Ridge("loo", basis=Polynomial(2))': (_quadratic(wl.Ridge("loo")), scaled),
    }
    rows = []
    for name, (model, data) in models.items():
        found = wl.verify(model.fit(data.X, data.y), data.X_test, data.y_test)
        values = [number(found[claim].value) for claim in COMPARED]
        rows.append([name, *values, number(found["expected_risk"].bound)])
    yield section(
        "a polynomial basis: all squares and products, mean squared errors compared",
        table(["", "training", "test", "gap", "rank", "digits", "95% interval of test"], rows),
        evidence_table([squares.evidence_["collinear"]]),
        "x1 is sex, coded 1 and 2: its square says nothing new, and the evidence names it.",
    )
    yield _kept(models['Ridge("loo")'][0], scaled.X_test)


COMPARED = ("empirical_risk", "expected_risk", "generalisation_gap", "rank", "digits")


def _standardised(sample: Sample) -> Sample:
    """Columns of mean 0 and deviation 1, so that one penalty suits them all."""
    mean, spread = sample.X.mean(axis=0), sample.X.std(axis=0)
    return sample._replace(X=(sample.X - mean) / spread, X_test=(sample.X_test - mean) / spread)


def _quadratic(model: Any) -> Any:
    return model.set_params(basis=wl.bases.Polynomial(2))


def _kept(model: Any, X: np.ndarray) -> str:
    """Save, load, and compare predictions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.wl"
        wl.save(model, path)
        same = bool(np.all(wl.load(path).predict(X) == model.predict(X)))
        size = path.stat().st_size
    told = "the same predictions, bit for bit" if same else "DIFFERENT predictions"
    return f"wl.save, wl.load: {size:,} bytes without pickle, {told}."
