"""Whether the classes of a logistic fit can be separated, and what proves the verdict.

Separable: some W has the score of the own class above all others for every sample; without a
penalty the loss then falls without end along W. Three proofs, the cheapest first: the fit's own
scores separate; an unpenalised fit that converged is itself a meeting of the classes, as its
residuals are weights with Σ ω_i r_i x̃_i = 0; else `solve.separation` decides, on small tables
exactly. Softmax is asked as one question of n(k − 1) rows, (e_y − e_c) ⊗ x̃ for c ≠ y (Kesler).
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.status import Status
from wonderland.linear.logistic_certificate import Certificate, least_margin
from wonderland.linear.logistic_problem import Logistic, scores
from wonderland.solve.newton import End

__all__ = ["Verdict", "judge"]

DECIDED = (
    100_000  # entries of the table up to which the exact decision is taken without being asked
)
LONG = 1e-4  # relative length of a last step that has not settled
FAR = 12.0  # lead at which an unpenalised fit is suspected of running away


class Verdict(NamedTuple):
    """Separable or not; None where it was not decided. `direction` is W with b (c, q), or None."""

    meaning: str
    separable: bool | None
    direction: np.ndarray | None = None
    weakly: bool = False


def judge(problem: Logistic, end: End, proof: Certificate, *, ask: bool = False) -> Verdict:
    """The verdict on one problem.

    Args:
        problem: One problem.
        end: Where its search ended.
        proof: Margins of the fit.
        ask: Decide even a large table.
    """
    own = end.theta.reshape(problem.columns, problem.width)
    if proof.margin > 0:
        meaning = "proved by the fit itself: every sample scores highest for its own class"
        return Verdict(meaning, separable=True, direction=own)
    free = not problem.penalty.any()
    sound = end.status in (Status.CONVERGED, Status.STALLED)
    if free and sound and proof.extreme < FAR:
        meaning = "proved by the residuals, weights under which the classes meet: see gradient_norm"
        return Verdict(meaning, separable=False)
    if free and sound and _runs_away(problem, end):
        meaning = "up to samples on the plane: along this direction no sample's loss ever grows"
        direction = end.step.reshape(own.shape)
        return Verdict(meaning, separable=False, direction=direction, weakly=True)
    if ask or free or np.prod(problem.X.shape) * (problem.classes - 1) ** 2 <= DECIDED:
        return _decided(problem, touching=free)
    return Verdict("not decided: this fit does not separate; another plane might", separable=None)


def _runs_away(problem: Logistic, end: End) -> bool:
    """Whether the last step still goes far, and puts no sample further on the wrong side."""
    size = float(np.abs(end.step).max())
    if size < LONG * float(np.abs(end.theta).max()):
        return False
    coef, intercept = problem.split(end.step / size)
    Z = scores(problem.X, coef[None], intercept[None])[0]
    weight = None if problem.weight is None else np.atleast_2d(problem.weight)[0]
    least, most = least_margin(Z, problem.codes, weight)
    return least >= -1e-7 * float(np.abs(Z).max()) and most > 0


def _decided(problem: Logistic, *, touching: bool) -> Verdict:
    from wonderland.solve.separation import separate  # only where it is asked

    problem = _positive(problem)
    c, q = problem.columns, problem.width
    if problem.classes == 2:
        signs = 2.0 * problem.codes - 1.0
        found = separate(problem.X, signs, fit_intercept=problem.fit_intercept, widest=touching)
        tail = [found.intercept] if problem.fit_intercept else []
        direction = np.append(found.coef, tail).reshape(c, q)
    else:
        rows = _kesler(problem)
        found = separate(rows, np.ones(len(rows)), fit_intercept=False, widest=touching)
        direction = found.coef.reshape(c, q)
    if found.separable:
        return Verdict(f"decided exactly: {found.proof}", separable=True, direction=direction)
    if found.weakly:
        meaning = f"only up to samples that lie on the plane: {found.proof}"
        return Verdict(meaning, separable=False, weakly=True)
    return Verdict(f"decided exactly: {found.proof}", separable=False)


def _positive(problem: Logistic) -> Logistic:
    """Without the samples of weight zero."""
    if problem.weight is None or np.all(problem.weight > 0):
        return problem
    return problem.rows(np.flatnonzero(np.atleast_2d(problem.weight)[0] > 0))


def _kesler(problem: Logistic) -> np.ndarray:
    """(e_y − e_c) ⊗ x̃ for every sample and c ≠ y (n(k − 1), kq)."""
    X, codes = problem.X, problem.codes
    table = X.toarray() if sp.issparse(X) else np.asarray(X)
    if problem.fit_intercept:
        table = np.hstack([table, np.ones((len(table), 1))])
    n, k = len(codes), problem.classes
    out = np.zeros((n, k - 1, k, table.shape[1]))
    rows = np.arange(n)
    for step in range(1, k):
        out[rows, step - 1, codes] = table
        out[rows, step - 1, (codes + step) % k] = -table
    return out.reshape(n * (k - 1), -1)
