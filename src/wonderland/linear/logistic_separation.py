"""Whether the classes of a logistic fit can be separated, and what proves the verdict.

Separable: some W has the score of the own class above all others for every sample; without a
penalty the loss then falls without end along W. Three proofs, the cheapest first: the fit's own
scores separate; an unpenalised fit that converged is itself a meeting of the classes, as its
residuals are weights with Σ ω_i r_i x̃_i = 0; else `solve.separation` decides: a small table as a
whole, a large one of two classes on some samples near the fit's plane, for where some of the
samples meet all do. Softmax is asked as one question of n(k − 1) rows, (e_y − e_c) ⊗ x̃ for c ≠ y
(Kesler).
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
FRACTIONS = 600  # entries up to which it may be taken in fractions, which are slow
HARD = 3  # of the hardest samples of each class for each parameter, where only some are looked at
BROAD = 60  # parameters up to which that is cheap
OPEN = (
    "not decided: this fit does not separate, another plane might; Perceptron, and for two classes "
    "LinearSVC(C=float('inf')), go to the end of it"
)
LONG = 1e-4  # relative length of a last step that has not settled
FAR = 12.0  # lead at which an unpenalised fit is suspected of running away


class Verdict(NamedTuple):
    """Separable or not; None where it was not decided. `direction` is W with b (c, q), or None."""

    meaning: str
    separable: bool | None
    direction: np.ndarray | None = None
    weakly: bool = False


def judge(
    problem: Logistic,
    end: End,
    proof: Certificate,
    *,
    ask: bool = False,
    at: np.ndarray | None = None,
) -> Verdict:
    """The verdict on one problem.

    Args:
        problem: One problem.
        end: Where its search ended.
        proof: Margins of the fit.
        ask: Decide even a large table.
        at: Scores of the fit (c, n), where they are at hand.
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
        return _decided(problem, touching=free, exact=ask)
    if problem.classes == 2 and at is not None and problem.width <= BROAD:
        hard = _hardest(problem, at[0])
        if _decided(problem.rows(hard), touching=False).separable is False:
            meaning = f"decided on {len(hard)} of the samples: where some meet all do"
            return Verdict(meaning, separable=False)
    return Verdict(OPEN, separable=None)


def _hardest(problem: Logistic, scores: np.ndarray) -> np.ndarray:
    """Of each class the samples with the lowest score of their own class, and as many others.

    The hardest alone may lie on exchanged sides, and be separated by the plane turned about.
    """
    lead, count = scores * (2.0 * problem.codes - 1.0), HARD * problem.width
    if problem.weight is not None:
        lead = np.where(np.atleast_2d(problem.weight)[0] > 0, lead, np.inf)
    chosen = []
    for code in (0, 1):
        own = np.flatnonzero((problem.codes == code) & np.isfinite(lead))
        if len(own) > 2 * count:
            lowest = own[np.argpartition(lead[own], count)[:count]]
            own = np.union1d(lowest, own[:: len(own) // count])
        chosen.append(own)
    return np.sort(np.concatenate(chosen))


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


def _decided(problem: Logistic, *, touching: bool, exact: bool = False) -> Verdict:
    """The verdict of `separate`; without `exact` no table but the smallest is put to fractions."""
    from wonderland.solve.separation import separate  # only where it is asked

    problem = _positive(problem)
    c, q = problem.columns, problem.width
    if problem.classes == 2:
        signs = 2.0 * problem.codes - 1.0
        exact |= np.prod(problem.X.shape) <= FRACTIONS
        found = separate(
            problem.X,
            signs,
            fit_intercept=problem.fit_intercept,
            widest=touching,
            fractions=bool(exact),
        )
        tail = [found.intercept] if problem.fit_intercept else []
        direction = np.append(found.coef, tail).reshape(c, q)
    else:
        rows = _kesler(problem)
        found = separate(
            rows,
            np.ones(len(rows)),
            fit_intercept=False,
            widest=touching,
            fractions=bool(exact or rows.size <= FRACTIONS),
        )
        direction = found.coef.reshape(c, q)
    if found.separable:
        return Verdict(f"decided exactly: {found.proof}", separable=True, direction=direction)
    if found.weakly:
        meaning = f"only up to samples that lie on the plane: {found.proof}"
        return Verdict(meaning, separable=False, weakly=True)
    if not found.proof:
        return Verdict(OPEN, separable=None)
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
