"""Averaging over models: ensembles beside one member, evidence beside scikit-learn's BayesianRidge.

An ensemble of sixteen is held against four times one member's time. Its peer is the loop that
anyone would write over `sklearn.utils.resample`.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge, LogisticRegression

import wonderland as wl
from benchmarks.measure import Case, Contender, Figure, Goal, Machine, Result, race

MEMBERS = 16
BESIDE = 20_000  # rows up to which the peer's loop is waited for
TIMES = 4.0  # one member's time


def cases(host: Machine | None = None, rounds: int = 3) -> Iterator[Result | Figure]:
    """Ensembles of logistic regressions and of networks, then Bayesian linear regression."""
    for rows in (20_000, 100_000, 400_000):
        yield from logistic(rows, 20, host, rounds)
    yield networks(1000, 10, (32,), rounds)
    yield evidence(200_000, 50, host, rounds)


def made(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, (X @ rng.normal(size=columns) + rng.logistic(size=rows) > 0).astype(int)


def best(run: Callable[[], Any], rounds: int) -> float:
    """The least time of several turns, after one that warms up."""
    run()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def ratio(name: str, one: Callable[[], Any], many: Callable[[], Any], rounds: int) -> Figure:
    """How many times one member's time an ensemble takes."""
    return Figure(name, best(many, rounds) / best(one, rounds), "×", Goal(TIMES, at_least=False))


def logistic(rows: int, columns: int, host: Any, rounds: int) -> Iterator[Result | Figure]:
    """Sixteen logistic regressions: beside one, and beside scikit-learn's bagging."""
    X, y = made(rows, columns)

    def many() -> Any:
        posterior = wl.Posterior(
            wl.LogisticRegression(), method="ensemble", members=MEMBERS, random_state=0
        )
        return posterior.fit(X, y)

    def peer() -> Any:
        return BaggingClassifier(LogisticRegression(), n_estimators=MEMBERS, random_state=0).fit(
            X, y
        )

    size = f"{rows:,} × {columns}"
    yield ratio(
        f"{MEMBERS} logistic regressions over one, {size}",
        lambda: wl.LogisticRegression().fit(X, y),
        many,
        rounds,
    )

    def loss(fitted: Any) -> float:
        p = fitted.predict_proba(X)
        return float(-np.log(p[np.arange(len(y)), y]).mean())

    if rows > BESIDE:
        return
    ours = Contender("wl.Posterior(method='ensemble')", many, loss)
    theirs = Contender("sklearn BaggingClassifier", peer, loss)
    yield race(
        Case(f"{MEMBERS} logistic regressions on {size}", [ours, theirs], quality_name="log loss"),
        host,
        rounds,
    )


def networks(rows: int, columns: int, hidden: tuple[int, ...], rounds: int) -> Figure:
    """Sixteen networks in one program over one network."""
    X, y = made(rows, columns)
    one = wl.MLPClassifier(hidden, max_iter=60, random_state=0)

    def many() -> Any:
        return wl.Posterior(one, method="ensemble", members=MEMBERS, random_state=0).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty epochs are what is timed
        name = f"{MEMBERS} networks {hidden} over one, {rows:,} × {columns}"
        return ratio(name, lambda: one.fit(X, y), many, rounds)


def evidence(rows: int, columns: int, host: Any, rounds: int) -> Result:
    """The maximum of the evidence, judged by its value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = X @ rng.normal(size=columns) + rng.normal(size=rows)

    def score(fitted: Any) -> float:
        return float(fitted.scores_[-1])

    ours = Contender(
        "wl.BayesianLinearRegression",
        lambda: wl.BayesianLinearRegression(compute_score=True).fit(X, y),
        score,
    )
    theirs = Contender(
        "sklearn BayesianRidge", lambda: BayesianRidge(compute_score=True).fit(X, y), score
    )
    work = f"Bayesian linear regression on {rows:,} × {columns}"
    return race(Case(work, [ours, theirs], quality_name="log evidence"), host, rounds)
