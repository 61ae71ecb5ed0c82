"""Calibration errors with intervals, and maps from scores to probabilities, on a million rows.

A thousand resamplings by a loop take minutes: the loops are timed on some of their turns, and the
time of a thousand is stated.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import wonderland as wl
from benchmarks.measure import Case, Contender, Machine, Result, best_of, race
from wonderland.trust.calibration_maps import fit_isotonic

ROWS, CLASSES, DRAWS, BINS = 1_000_000, 10, 1000, 15
TIMED = 5  # turns of a loop that are timed

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def make(rows: int = ROWS, classes: int = CLASSES, seed: int = 0) -> Data:
    """Logits, their probabilities, and labels drawn from a flatter version of these."""
    rng = np.random.default_rng(seed)
    z = 2.0 * rng.normal(size=(rows, classes))
    p, flat = (np.exp(log_softmax(power * z, axis=1)) for power in (1.0, 0.6))
    y = (flat.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=classes - 1)
    return z, p, y


def cases(host: Machine | None = None, rounds: int = 3, rows: int = ROWS) -> Iterator[Result]:
    """The error with its bootstrap, then temperature and isotonic maps."""
    data = make(rows)
    yield errors(data, rounds)
    yield race(temperatures(data), host, rounds)
    yield race(isotonics(data), host, rounds)


def errors(data: Data, rounds: int) -> Result:
    """ECE and 1,000 draws of it: ours, NumPy's loop over rows, netcal called on resampled rows."""
    _, p, y = data
    runs: list[tuple[str, Callable[[], float], float, float | None]] = [
        (
            "wonderland: ECE, 1,000 draws, and the test of calibration by 1,000 more",
            lambda: wl.metrics.calibration_error(y, p, bins=BINS, draws=DRAWS).high,
            1.0,
            None,
        ),
        ("NumPy, a loop over draws", partial(numpy_loop, p, y), DRAWS / TIMED, 30.0),
    ]
    measure = netcal_error()
    if measure is not None:
        runs.append(
            ("netcal.ECE, a loop over draws", partial(netcal_loop, measure, p, y), DRAWS, 30.0)
        )
    seconds, ends = best_of([run for _, run, _, _ in runs], rounds)
    scaled = [time * factor for time, (_, _, factor, _) in zip(seconds, runs, strict=True)]
    return Result(
        work=f"ECE of {len(y):,} × {p.shape[1]} probabilities with {DRAWS} bootstrap draws",
        names=[name for name, _, _, _ in runs],
        seconds=scaled,
        ratios=[time / scaled[0] for time in scaled],
        goals=[goal for _, _, _, goal in runs],
        quality=[float(end) for end in ends],
        quality_name="upper end (loops: few draws)",
    )


def numpy_loop(p: np.ndarray, y: np.ndarray, turns: int = TIMED) -> float:
    """What a careful person writes: bins once, then `bincount` of resampled rows."""
    rng, n = np.random.default_rng(0), len(y)
    top = p.argmax(axis=1)
    confidence = p[np.arange(n), top]
    gap = (top == y) - confidence
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    value = np.abs(np.bincount(place, gap, BINS)).sum() / n
    drawn = []
    for _ in range(turns):
        rows = rng.integers(n, size=n)
        drawn.append(np.abs(np.bincount(place[rows], gap[rows], BINS)).sum() / n)
    return float(2 * value - np.quantile(drawn, 0.025))


def netcal_error() -> Any:
    """netcal's ECE, or None where it cannot be imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module("netcal.metrics").ECE(BINS)
        except ImportError:
            return None


def netcal_loop(measure: Any, p: np.ndarray, y: np.ndarray) -> float:
    """One of the thousand draws."""
    rows = np.random.default_rng(0).integers(len(y), size=len(y))
    return float(measure.measure(p[rows], y[rows]))


def temperatures(data: Data) -> Case:
    """One number, by each contender at its own settings; the quality is the log loss reached."""
    z, _, y = data

    def loss(beta: float) -> float:
        return float(-log_softmax(beta * z, axis=1)[np.arange(len(y)), y].mean())

    contenders = [
        Contender("wonderland", lambda: float(wl.fit_temperature(z, y).model.beta), loss),
        Contender("scikit-learn", partial(sklearn_temperature, z, y), loss, 20.0),
        Contender("SciPy, bounded search", partial(scipy_temperature, loss), loss, 20.0),
    ]
    for name, run in (("netcal", netcal_temperature), ("PyTorch, L-BFGS", torch_temperature)):
        fit = run(z, y)
        if fit is not None:
            contenders.append(Contender(name, fit, loss, 20.0))
    work = f"temperature of {len(y):,} × {z.shape[1]} logits"
    # Each pass reads the scores once; three passes are the least a certified Newton step needs.
    return Case(work, contenders, bytes=3.0 * z.nbytes, quality_name="log loss")


class Scores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose scores are its input: nothing but the map is timed."""

    def __init__(self, classes: int = CLASSES) -> None:
        self.classes = classes
        self.classes_, self.n_features_in_ = np.arange(classes), classes

    def fit(self, X: Any, y: Any) -> "Scores":
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X


def _theirs(z: np.ndarray, y: np.ndarray, method: str) -> Any:
    wrapped = CalibratedClassifierCV(
        FrozenEstimator(Scores(z.shape[1])),
        method=method,
        cv=[(np.arange(2), np.arange(len(y)))],
        ensemble=True,
    )
    return wrapped.fit(z, y).calibrated_classifiers_[0].calibrators


def sklearn_temperature(z: np.ndarray, y: np.ndarray) -> float:
    return float(_theirs(z, y, "temperature")[0].beta_)


def scipy_temperature(loss: Callable[[float], float]) -> float:
    found = minimize_scalar(lambda b: loss(np.exp(b)), bounds=(-3, 3), options={"xatol": 1e-9})
    return float(np.exp(found.x))


def netcal_temperature(z: np.ndarray, y: np.ndarray) -> Callable[[], float] | None:
    """netcal's scaling, which needs packages of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scaling = import_module("netcal.scaling").TemperatureScaling
        except ImportError:
            return None
    p = np.exp(log_softmax(z, axis=1))
    return lambda: float(scaling().fit(p, y).weights[0])


def torch_temperature(z: np.ndarray, y: np.ndarray) -> Callable[[], float] | None:
    """The program of Guo et al.: L-BFGS on the cross-entropy, as netcal's solver too."""
    try:
        import torch
    except ImportError:
        return None
    logits, labels = torch.from_numpy(z), torch.from_numpy(y)

    def fit() -> float:
        beta = torch.ones(1, dtype=torch.float64, requires_grad=True)
        solver = torch.optim.LBFGS([beta], lr=1.0, max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> Any:
            solver.zero_grad()
            value = torch.nn.functional.cross_entropy(beta * logits, labels)
            value.backward()
            return value

        solver.step(closure)
        return float(beta.detach()[0])

    return fit


def isotonics(data: Data) -> Case:
    """Isotonic regression of each class; the quality is the mean squared distance."""
    z, _, y = data
    z, y = z[: len(y) // 5], y[: len(y) // 5]
    true = y == 0

    def distance(values: np.ndarray) -> float:
        return float(np.mean((values - true) ** 2))

    contenders = [
        Contender("wonderland", lambda: fit_isotonic(z, y).model.steps[0](z[:, 0]), distance),
        Contender("scikit-learn", lambda: _theirs(z, y, "isotonic")[0].predict(z[:, 0]), distance),
    ]
    work = f"isotonic maps of {len(y):,} × {z.shape[1]} scores"
    return Case(work, contenders, bytes=float(z.nbytes), quality_name="squared distance, class 0")
