"""Conformal sets and intervals beside MAPIE, and coverage over a thousand repetitions.

`python -m benchmarks conformal [--rounds K] [--repetitions R] [--json]`

Coverage is measured on six made and four real tasks (these need the reference data beside the
project): calibration and test rows are dealt anew each time, and the mean over all deals is held
against the exact mean and variance of the beta-binomial distribution. Methods with many models are
refitted each time; of them theory promises 1 − 2α (1 − α for the widest intervals).
"""

import argparse
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, machine, race, show
from wonderland.trust.conformal_labels import LabelRule
from wonderland.trust.conformal_trials import ERRORS, Trials, interval_trials, label_trials
from wonderland.trust.scores import APS, LAC, Margin

ALPHAS = (0.01, 0.05, 0.1, 0.2)
ROWS, CLASSES = 1_000_000, 10
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks conformal", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--repetitions", type=int, default=1000, help="deals of each pool")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    host = machine()
    results: list[Result | Figure] = [*speed(host, chosen.rounds)]
    results += coverage(chosen.repetitions)
    show(results, host, as_json=chosen.json)


def cases(host: Machine | None = None, rounds: int = 3) -> Iterator[Result | Figure]:
    """Speed beside MAPIE, then the table of coverage."""
    yield from speed(host, rounds)
    yield from coverage(1000)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are its input: nothing but the sets is timed."""

    def __init__(self) -> None:
        self.classes_, self.n_features_in_ = np.arange(CLASSES), CLASSES

    def fit(self, X: Any, y: Any) -> "Given":
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return X.argmax(axis=1)


def speed(host: Machine | None = None, rounds: int = 3) -> Iterator[Result]:
    """Sets of a million rows; jackknife+ of ridge without its refits."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(CLASSES, 0.5), size=ROWS)
    y = (p.cumsum(axis=1) > rng.random((ROWS, 1))).argmax(axis=1)
    for score, randomise in (("lac", False), ("aps", False), ("aps", True)):
        yield race(_sets(p, y, score, randomise=randomise), host, rounds)
    yield race(_jackknife(), host, rounds)


def _sets(p: np.ndarray, y: np.ndarray, score: str, *, randomise: bool) -> Case:
    mapie = import_module("mapie.classification")
    ours = wl.ConformalClassifier(
        Given(), conformity_score=score, randomise=randomise, cv="prefit", random_state=0
    ).fit(p[:10_000], y[:10_000])
    theirs = mapie.SplitConformalClassifier(
        Given(), confidence_level=0.9, conformity_score=score, prefit=True, random_state=0
    ).conformalize(p[:10_000], y[:10_000])
    asked = {"conformity_score_params": {"include_last_label": "randomized"}} if randomise else {}
    name = f"{score}, with uniform numbers" if randomise else score
    return Case(
        f"split conformal sets of {ROWS:,} × {CLASSES} probabilities, {name}",
        [
            Contender("wonderland", lambda: ours.predict_set(p), lambda s: s.contains(y).mean()),
            Contender(
                "MAPIE",
                lambda: theirs.predict_set(p, **asked)[1],
                lambda s: s[np.arange(ROWS), y, 0].mean(),
                goal=10.0,
            ),
        ],
        bytes=float(p.nbytes + p.size),
        quality_name="coverage",
    )


def _jackknife(n: int = 5000, d: int = 20, m: int = 1000) -> Case:
    mapie = import_module("mapie.regression")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n + m, d))
    y = X @ rng.normal(size=d) + rng.standard_t(4, size=n + m)
    new = X[n:]

    def ours() -> np.ndarray:
        fitted = wl.ConformalRegressor(wl.Ridge(), "jackknife+").fit(X[:n], y[:n])
        return np.column_stack([*fitted.predict_interval(new)])

    def theirs() -> np.ndarray:
        fitted = mapie.CrossConformalRegressor(Ridge(), confidence_level=0.9, cv=n, method="plus")
        return fitted.fit_conformalize(X[:n], y[:n]).predict_interval(new)[1][:, :, 0]

    reference = ours()
    return Case(
        f"jackknife+ of ridge, {n:,} × {d}, intervals of {m:,} rows",
        [
            Contender("wonderland", ours, lambda ends: np.abs(ends - reference).max()),
            Contender("MAPIE", theirs, lambda ends: np.abs(ends - reference).max(), goal=100.0),
        ],
        flops=2.0 * 2 * m * n * d,
        quality_name="largest difference",
    )


class Labelled(NamedTuple):
    """Rows a classifier has not seen: probabilities, classes, a group of each row."""

    name: str
    p: np.ndarray
    codes: np.ndarray
    groups: np.ndarray


class Measured(NamedTuple):
    """Rows a regressor has not seen: X and y, the bands of three scores, a group of each row."""

    name: str
    X: np.ndarray
    y: np.ndarray
    bands: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
    groups: np.ndarray


def _labelled(name: str, X: np.ndarray, y: np.ndarray, train: int, pool: int) -> Labelled:
    order = np.random.default_rng(0).permutation(len(X))[: train + pool]
    X, codes = X[order].astype(float), np.unique(y, return_inverse=True)[1][order]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    p = model.fit(X[:train], codes[:train]).predict_proba(X[train:])
    column = X[train:, 0]
    return Labelled(name, p, codes[train:], (column > np.median(column)).astype(int))


def _measured(name: str, X: np.ndarray, y: np.ndarray, train: int, pool: int) -> Measured:
    order = np.random.default_rng(0).permutation(len(X))[: train + pool]
    X, y = X[order].astype(float), y[order]
    bands = {}
    for score in ("absolute", "normalised", "quantile"):
        model: Any = make_pipeline(StandardScaler(), Ridge())
        if score == "quantile":
            model = GradientBoostingRegressor(n_estimators=50, random_state=0)
        fitted = wl.ConformalRegressor(
            model, conformity_score=score, alpha=0.1, cv=0.05, random_state=0
        ).fit(X[:train], y[:train])
        bands[score] = fitted.band_.ends(X[train:])
    column = X[train:, 0]
    groups = (column > np.median(column)).astype(int)
    return Measured(name, X[train:], y[train:], bands, groups)


def _classified() -> Iterator[Labelled]:
    rng = np.random.default_rng(3)
    X, y = make_classification(1500, 8, n_informative=6, n_classes=4, random_state=0)
    yield _labelled("four classes (made)", X, y, 500, 1000)
    sizes = [0.5, 0.2, 0.15, 0.15]
    X, y = make_classification(
        2500, 8, n_informative=6, n_classes=4, weights=sizes, flip_y=0.1, random_state=1
    )
    yield _labelled("unequal classes (made)", X, y, 500, 2000)
    angle, y = rng.uniform(0, np.pi, 1500), rng.integers(0, 2, 1500)
    X = np.column_stack([np.cos(angle) + y, np.sin(angle) * (1 - 2 * y)])
    yield _labelled("moons (made)", X + 0.3 * rng.normal(size=X.shape), y, 500, 1000)
    for name, path, train, pool in (
        ("banknote", "banknote/banknote.npz", 372, 1000),
        ("covtype", "covtype_15k/covtype_15k.npz", 2000, 2000),
    ):
        if (DATA / path).is_file():
            file = np.load(DATA / path)
            # Two columns of the banknotes leave them hard to tell.
            X = file["x"][:, 2:] if name == "banknote" else file["x"]
            yield _labelled(name, X, file["y"], train, pool)


def _regressed() -> Iterator[Measured]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 5))
    yield _measured("linear (made)", X, X.sum(axis=1) + rng.normal(size=1500), 500, 1000)
    noise = (0.2 + np.abs(X[:, 0])) * rng.normal(size=1500)
    yield _measured("uneven noise (made)", X, np.sin(2 * X[:, 0]) + noise, 500, 1000)
    y = X.sum(axis=1) + rng.standard_t(2, size=1500)
    yield _measured("heavy tails (made)", X, y, 500, 1000)
    for name, path, train in (
        ("concrete", "uci_regression_bnn/concrete.npz", 330),
        ("california", "california_housing/california_housing.npz", 1000),
    ):
        if (DATA / path).is_file():
            file = np.load(DATA / path)
            yield _measured(name, file["x"], file["y"], train, 1000 if name != "concrete" else 700)


def coverage(repetitions: int = 1000) -> Iterator[Figure]:
    """A line for each task and method: coverage at four levels, and how many are as promised."""
    began = time.perf_counter()
    for task in _classified():
        for name, rule, randomise, groups in (
            ("lac", LabelRule(LAC(), by_class=False), False, None),
            ("aps", LabelRule(APS(), by_class=False), False, None),
            ("aps, uniform numbers", LabelRule(APS(), by_class=False), True, None),
            ("raps, uniform numbers", LabelRule(APS(0.1, 1), by_class=False), True, None),
            ("margin", LabelRule(Margin(), by_class=False), False, None),
            ("lac in each class", LabelRule(LAC(), by_class=True), False, None),
            ("lac in each group", LabelRule(LAC(), by_class=False), False, task.groups),
        ):
            half = len(task.p) // 2
            found = label_trials(
                rule,
                task.p,
                task.codes,
                ALPHAS,
                calibration=half,
                repetitions=repetitions,
                groups=groups,
                randomise=randomise,
            )
            yield _line(f"{task.name}, {name}", found)
        yield _crossed(task, repetitions)
    for regression in _regressed():
        for name, band in regression.bands.items():
            for groups in (None, regression.groups) if name == "absolute" else (None,):
                half = len(regression.y) // 2
                deals = interval_trials(
                    band,
                    regression.y,
                    ALPHAS,
                    calibration=half,
                    repetitions=repetitions,
                    groups=groups,
                )
                title = f"{regression.name}, {name}" + ("" if groups is None else " in each group")
                yield _line(title, deals)
        for method in ("jackknife+", "cv+", "jackknife-minmax"):
            yield _refitted(regression, method, repetitions)
    for kind in ("without weights", "known weights", "estimated weights"):
        yield _shifted(kind, repetitions)
    yield Figure("the table of coverage", time.perf_counter() - began, "s")


def _line(name: str, found: Trials) -> Figure:
    """Coverage at the four levels (of the worst group where there are groups)."""
    worst = found.coverage.min(axis=1)
    held = found.holds()
    kind = "" if found.distinct else " (ties: at least)"
    return _figure(f"{name}{kind}", worst, int(held.sum()), held.size)


def _figure(name: str, shares: np.ndarray, kept: int, of: int, *, promised: bool = True) -> Figure:
    shown = " ".join(f"{share:.4f}" for share in shares)
    goal = Goal(float(of), at_least=True) if promised else None
    return Figure(f"coverage {shown}  {name}", float(kept), f"of {of} as promised", goal)


def _refitted(task: Measured, method: str, repetitions: int, n: int = 100, m: int = 100) -> Figure:
    """A hundred rows to fit and calibrate, a hundred to test, drawn anew each time."""
    rng, shares = np.random.default_rng(5), np.empty((repetitions, len(ALPHAS)))
    X = (task.X - task.X.mean(axis=0)) / task.X.std(axis=0)
    for number in range(repetitions):
        rows = rng.permutation(len(X))[: n + m]
        fitted = wl.ConformalRegressor(Ridge(), method, alpha=0.01, random_state=number)
        fitted.fit(X[rows[:n]], task.y[rows[:n]])
        found = fitted.predict_interval(X[rows[n:]], ALPHAS)
        shares[number] = [ends.contains(task.y[rows[n:]]).mean() for ends in found]
    error = shares.std(axis=0) / np.sqrt(repetitions)
    promise = 1 - np.array(ALPHAS) * (1 if "minmax" in method else 2)
    kept = shares.mean(axis=0) >= promise - ERRORS * error
    return _figure(f"{task.name}, {method}", shares.mean(axis=0), int(kept.sum()), 4)


def _crossed(task: Labelled, repetitions: int, n: int = 200, m: int = 200) -> Figure:
    """Folds around naive Bayes on the probabilities of the first model as features."""
    rng, shares = np.random.default_rng(6), np.empty((repetitions, len(ALPHAS)))
    X = np.log(np.maximum(task.p, 1e-6))
    for number in range(repetitions):
        rows = rng.permutation(len(X))[: n + m]
        fitted = wl.ConformalClassifier(
            GaussianNB(var_smoothing=1e-3), "cross", alpha=0.01, random_state=number
        ).fit(X[rows[:n]], task.codes[rows[:n]])
        found = fitted.predict_set(X[rows[n:]], ALPHAS)
        shares[number] = [sets.contains(task.codes[rows[n:]]).mean() for sets in found]
    error = shares.std(axis=0) / np.sqrt(repetitions)
    kept = shares.mean(axis=0) >= 1 - 2 * np.array(ALPHAS) - ERRORS * error
    return _figure(f"{task.name}, cross", shares.mean(axis=0), int(kept.sum()), 4)


def _shifted(kind: str, repetitions: int, n: int = 1000, m: int = 500) -> Figure:
    """Rows from N(0, 1), predictions for N(1, 1): the likelihood ratio is exp(x − ½)."""
    rng, shares = np.random.default_rng(7), np.empty((repetitions, len(ALPHAS)))

    def draw(count: int, centre: float) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(centre, 1.0, size=(count, 1))
        return X, X[:, 0] + (0.2 + np.exp(X[:, 0])) * rng.normal(size=count)

    model = Ridge().fit(*draw(2000, 0.0))
    shift: Any = {
        "without weights": None,
        "known weights": lambda X: np.exp(X[:, 0] - 0.5),
        "estimated weights": LogisticRegression(),
    }[kind]
    for number in range(repetitions):
        known, new = draw(n, 0.0), draw(m, 1.0)
        fitted = wl.ConformalRegressor(model, cv="prefit", shift=shift)
        fitted.fit(*known, X_target=new[0])
        found = fitted.predict_interval(new[0], ALPHAS)
        shares[number] = [ends.contains(new[1]).mean() for ends in found]
    error = shares.std(axis=0) / np.sqrt(repetitions)
    kept = shares.mean(axis=0) >= 1 - np.array(ALPHAS) - ERRORS * error
    promised = kind == "known weights"
    return _figure(
        f"shifted covariates, {kind}", shares.mean(axis=0), int(kept.sum()), 4, promised=promised
    )
