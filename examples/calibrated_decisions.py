"""From boastful probabilities to cheap decisions: measure, calibrate, decide, in that order."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

import wonderland as wl


def patients(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two measurements, each noted three times, and whether the patient is ill."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(rows, 2)), 3, axis=1)
    ill = rng.uniform(size=rows) < 1 / (1 + np.exp(-X[:, 0] - X[:, 3]))
    return X, np.where(ill, "ill", "well")


def main() -> None:
    X, y = patients(3000, seed=0)
    new, truth = patients(3000, seed=1)
    costs = {("well", "ill"): 10.0, ("ill", "well"): 1.0}  # (decision, truth)

    boastful = GaussianNB().fit(X, y)
    print(wl.metrics.reliability(truth, boastful.predict_proba(new), bins=5))
    print(wl.metrics.calibration_error(truth, boastful.predict_proba(new)))

    honest = wl.CalibratedClassifier(GaussianNB()).fit(X, y)
    print(f"temperature {honest.model_.temperature:.2f}")
    print(wl.metrics.calibration_error(truth, honest.predict_proba(new)))

    careful = wl.CostSensitiveClassifier(honest, costs, cv=3).fit(X, y)
    C = careful.costs_
    codes = np.searchsorted(careful.classes_, truth)
    said = np.searchsorted(careful.classes_, honest.predict(new))
    print(f"most probable label costs {C[said, codes].mean():.3f}")
    print(f"least expected cost costs {careful.cost(new, truth)}")


if __name__ == "__main__":
    main()
