"""Prediction sets and intervals: what is promised, what is measured, and for whom it fails.

Everything is drawn from a seed; no data are needed.
"""

import numpy as np

import wonderland as wl

CLASSES = np.array(["healthy", "mild", "severe"])


def patients(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two measurements of patients, of whom few are severely ill."""
    codes = rng.choice(3, size=n, p=[0.7, 0.25, 0.05])
    return rng.normal(size=(n, 2)) + np.column_stack([1.2 * codes, 0.4 * codes]), CLASSES[codes]


def labels(rng: np.random.Generator) -> None:
    X, y = patients(4000, rng)
    new, truth = patients(4000, rng)
    print("sets of labels, 95 % asked for: coverage (and size) of each class")
    for name, options in (
        ("one threshold", {}),
        ("one for each class", {"groups": "class"}),
        ("adaptive", {"conformity_score": "aps", "randomise": True}),
    ):
        fitted = wl.ConformalClassifier(
            wl.LogisticRegression(), alpha=0.05, random_state=0, **options
        ).fit(X, y)
        sets = fitted.predict_set(new)
        hit = sets.contains(truth)
        shares = "  ".join(
            f"{label} {hit[truth == label].mean():.3f} ({sets.size[truth == label].mean():.2f})"
            for label in CLASSES
        )
        print(f"  {name:20} all {hit.mean():.3f}   {shares}")
    claims = wl.verify(fitted, new, truth)
    print(f"  {claims['test_coverage']}")


def numbers(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 5))
    y = X @ np.ones(5) + (0.3 + np.abs(X[:, 0])) * rng.standard_t(4, size=400)
    print("intervals from 200 rows, 90 % asked for: coverage and median width")
    for method, score in (
        ("split", "absolute"),
        ("split", "normalised"),
        ("cv+", "absolute"),
        ("jackknife+", "absolute"),
    ):
        fitted = wl.ConformalRegressor(
            wl.Ridge(), method, conformity_score=score, random_state=0
        ).fit(X[:200], y[:200])
        found = fitted.predict_interval(X[200:])
        share, width = found.contains(y[200:]).mean(), np.median(found.width)
        print(f"  {method + ', ' + score:22} {share:.3f}  {width:.2f}")
    print(f"  {fitted.evidence_['solver']}")


if __name__ == "__main__":
    labels(np.random.default_rng(0))
    numbers(np.random.default_rng(1))
