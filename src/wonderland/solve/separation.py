"""Whether a plane separates two classes, decided exactly, with the proof of the answer.

    separable:   (w, b) with s_i (w·x_i + b) > 0 for every sample, and the widest such plane
    otherwise:   weights ≥ 0, one in each class in sum, with Σ₊ ω_i x_i = Σ₋ ω_i x_i: the hulls meet

Exactly one of the two exists (Gordan 1873; with an intercept, Farkas). Hulls that only touch meet.
A working set of rows near the plane is solved for, and grows by the rows it got wrong; a meeting
of some rows is a meeting of all, so that large tables end as early as their answer allows.
Shapes: X (n, d), signs (n,), w (d,).

Reference: Lawson & Hanson, Solving Least Squares Problems (1974), chapter 23.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from wonderland.core.arrays import double
from wonderland.core.doubled import two_sum
from wonderland.core.errors import InputError
from wonderland.solve.separation_plane import (
    Frame,
    Plane,
    affine,
    augmented,
    balanced,
    nearest,
    outside,
    widen,
)
from wonderland.solve.separation_proof import (
    TINY,
    Rows,
    first_phase,
    meeting_near,
    surely_positive,
)

__all__ = ["Separation", "separate"]

Array = np.ndarray

ROUNDS = 100
MOST = 500  # rows that enter a working set at once
WIDE = 1000  # columns up to which a touch is looked into
FAINT = 1e-10  # relative size of what counts as zero there
SAMPLED = 50_000  # rows a first guess is made from


class Separation(NamedTuple):
    """The verdict on two classes and what proves it.

    Attributes:
        separable: Whether some plane has every sample strictly on its own side.
        coef: w (d,) of a separating plane, the one of the widest margin where that was asked for;
            zeros where there is none.
        intercept: b.
        margin: min_i s_i (w·x_i + b)/‖w‖: the distance of the nearest sample; ≤ 0 means none.
        radius: C = max_i ‖(x_i, 1)‖ (without an intercept max_i ‖x_i‖).
        weights: (n,) ≥ 0, summing to one in each class, where the weighted means of the classes
            are the same point; zeros where the classes are separable. Without an intercept the
            weights sum to one and Σ ω_i s_i x_i = 0.
        residual: Largest entry of the difference of the two means, relative to the largest |x|.
        margin_bound: Half the distance of a point of one hull from a point of the other: no plane
            has a wider margin. Infinite where the widest was not asked for.
        augmented_margin: γ = max over v of min_i s_i v·(x_i, 1)/‖v‖, so that the perceptron makes
            at most C²/γ² mistakes.
        weakly: Not separable, but some plane has no sample on the wrong side and not all on it
            (judged in floats); None where it was not asked for, or the table is too wide.
        proof: How the verdict was proved; empty where rounding leaves it open.
    """

    separable: bool
    coef: Array
    intercept: float
    margin: float
    radius: float
    weights: Array
    residual: float
    margin_bound: float
    augmented_margin: float
    weakly: bool | None
    proof: str


def separate(
    X: Any,
    signs: Any,
    *,
    fit_intercept: bool = True,
    widest: bool = True,
    plane: tuple[Any, float] | None = None,
    rounds: int = ROUNDS,
    fractions: bool = True,
) -> Separation:
    """Decide whether a plane separates the samples by their signs.

    Args:
        X: (n, d), dense or scipy sparse.
        signs: (n,), positive or negative numbers; only their signs count.
        fit_intercept: Whether the plane may miss the origin.
        widest: Whether to go on: to the widest margin once some plane was found, to whether the
            hulls only touch once they were found to meet.
        plane: (w, b) to try first, such as a classifier that makes no mistake.
        rounds: Most working sets; 0 only tries a first plane and looks for equal samples of both
            classes, which answers many wide tables at once and leaves others open (no `proof`).
        fractions: Whether a small table that floats leave open is solved in fractions, which may
            take many seconds; else it stays open.

    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> separate(corners, [-1, 1, 1, 1]).separable
    True
    >>> meeting = separate(corners, [-1, 1, 1, -1])  # exclusive or
    >>> meeting.separable, meeting.weights.round(12).tolist()
    (False, [0.5, 0.5, 0.5, 0.5])
    """
    X = X.tocsr().astype(np.float64) if sp.issparse(X) else double(X)
    signs = np.where(double(signs) > 0, 1.0, -1.0)
    if X.ndim != 2 or len(signs) != X.shape[0] or not len(signs):
        raise InputError(
            f"X of shape {X.shape} with {len(signs)} signs",
            "a table (n, d) with n ≥ 1 and one sign for each row",
            "Pass X and y of the same samples",
        )
    rows = Rows.of(X, signs, intercept=fit_intercept)
    verdict = (
        _one_class(rows)
        if fit_intercept and np.all(signs == signs[0])
        else _decide(rows, plane, rounds, fractions=fractions)
    )
    if not widest or not verdict.proof:
        return verdict
    return (
        _widened(rows, verdict)
        if verdict.separable
        else verdict._replace(weakly=_touch(rows, verdict))
    )


def _verdict(rows: Rows, **known: Any) -> Separation:
    """A verdict with what is known, the rest neutral."""
    radius = float(np.sqrt(rows.norms.max() ** 2 + rows.intercept))
    d = rows.X.shape[1]
    blank = Separation(
        separable=False,
        coef=np.zeros(d),
        intercept=0.0,
        margin=0.0,
        radius=radius,
        weights=np.zeros(len(rows.signs)),
        residual=0.0,
        margin_bound=np.inf,
        augmented_margin=0.0,
        weakly=None,
        proof="",
    )
    return blank._replace(**known)


def _one_class(rows: Rows) -> Separation:
    """One class lies on its own side of the plane at infinity."""
    gamma = 1.0  # of v = (0, s), which every (x, 1) keeps
    return _verdict(
        rows,
        separable=True,
        weakly=False,
        intercept=float(rows.signs[0]),
        margin=np.inf,
        augmented_margin=gamma,
        proof="one class only",
    )


def _decide(
    rows: Rows, plane: tuple[Any, float] | None, rounds: int, *, fractions: bool = True
) -> Separation:
    """Rounds of: solve for the working set, try both proofs, let in the rows that were wrong."""
    coef, intercept = _guess(rows) if plane is None else (double(plane[0]), float(plane[1]))
    scores = rows.scores(coef, intercept)
    if surely_positive(rows, coef, intercept, scores):
        return _separated(rows, coef, intercept, scores)
    if (twins := _twins(rows)) is not None:
        return _met(rows, twins, np.array([0.5, 0.5]), "equal samples of both classes")
    index = _seeds(rows, scores, _batch(rows))
    for _ in range(rounds):
        frame = _fitted_frame(rows, index)
        Z = frame.into(rows, index)
        share, v = nearest(Z)
        if np.min(Z @ v) <= 0:  # the plane fails on its own rows: the hulls meet, or nearly so
            return _meeting(rows, index, Z, share, fractions=fractions)
        coef, intercept = frame.back(v)
        scores = rows.scores(coef, intercept)
        if surely_positive(rows, coef, intercept, scores):
            return _separated(rows, coef, intercept, scores)
        entering = outside(scores, index, 0.5, _batch(rows))
        if not len(entering):
            return _meeting(rows, index, Z, share, fractions=fractions)
        index = np.union1d(index, entering)
    return _verdict(rows)


def _twins(rows: Rows) -> Array | None:
    """Two equal samples of different classes, where there are any: neighbours by a random sum."""
    sums = rows.X @ np.random.default_rng(0).normal(size=rows.X.shape[1])
    order = np.lexsort((rows.signs, sums))
    one, other = order[:-1], order[1:]
    near = np.abs(sums[other] - sums[one]) <= FAINT * (rows.norms[one] + rows.norms[other])
    apart = np.flatnonzero(near & (rows.signs[one] != rows.signs[other]))[:MOST]
    for i, j in zip(one[apart], other[apart], strict=True):
        if np.array_equal(rows.dense([i]), rows.dense([j])):
            return np.array([i, j])
    return None


def _batch(rows: Rows) -> int:
    """Rows that enter at once."""
    return min(2 * rows.X.shape[1] + 50, MOST)


def _guess(rows: Rows) -> tuple[Array, float]:
    """Least squares on the signs, from a sample of the rows where they are many."""
    step = -(-len(rows.signs) // SAMPLED)
    X, signs = rows.X[::step], rows.signs[::step]
    if sp.issparse(X) or X.shape[1] > len(signs):
        ones = np.ones((X.shape[0], int(rows.intercept)))
        Z = sp.hstack([X, ones]).tocsr() if sp.issparse(X) else np.hstack([X, ones])
        v = lsqr(Z, signs, iter_lim=200)[0]
        return v[: X.shape[1]], float(v[X.shape[1] :].sum())
    middle = X.mean(axis=0) if rows.intercept else np.zeros(X.shape[1])
    mean = signs.mean() if rows.intercept else 0.0
    centred = X - middle
    gram = centred.T @ centred
    size = np.sqrt(np.diag(gram)) + np.finfo(float).tiny
    scaled = gram / size / size[:, None] + 1e-12 * np.eye(len(gram))
    coef = np.linalg.solve(scaled, centred.T @ (signs - mean) / size) / size
    return coef, float(mean - middle @ coef)


def _seeds(rows: Rows, scores: Array, count: int) -> Array:
    """The lowest scores of each class, and a few rows from everywhere."""
    classes = [np.flatnonzero(rows.signs == sign) for sign in (-1.0, 1.0)]
    lowest = [
        own[np.argpartition(scores[own], count)[:count]] if len(own) > count else own
        for own in classes
    ]
    spread = np.linspace(0, len(scores) - 1, min(count, len(scores))).astype(int)
    return np.unique(np.concatenate([*lowest, spread]))


def _fitted_frame(rows: Rows, index: Array) -> Frame:
    """Columns of about one length, by powers of two, and shifted where no digit is lost."""
    X = rows.dense(index)
    shift = np.zeros(X.shape[1])
    if rows.intercept:
        middle = X[0]
        moved, lost = two_sum(X, -middle)
        exact = np.all(lost == 0, axis=0)
        closer = np.abs(moved).max(axis=0) < np.abs(X).max(axis=0) / 4
        shift = np.where(exact & closer, middle, 0.0)
    # The middle size of what is not zero: one row far off must not drown the others.
    sizes = np.sort(np.abs(X - shift), axis=0)
    filled = np.count_nonzero(sizes, axis=0)
    size = sizes[len(sizes) - (filled + 1) // 2 - (filled == 0), np.arange(sizes.shape[1])]
    return Frame(shift, np.ldexp(1.0, -np.frexp(np.where(size > 0, size, 1.0))[1]))


def _separated(rows: Rows, coef: Array, intercept: float, scores: Array) -> Separation:
    """The verdict of a plane whose scores are all surely positive."""
    length = float(np.linalg.norm(coef))
    least = max(float(scores.min()), 0.0)
    return _verdict(
        rows,
        separable=True,
        weakly=False,
        coef=coef,
        intercept=intercept,
        margin=least / length if length > 0 else np.inf,
        augmented_margin=least / float(np.hypot(length, intercept if rows.intercept else 0.0)),
        proof="every score exceeds its rounding bound, or is positive in exact arithmetic",
    )


def _meeting(
    rows: Rows, index: Array, Z: Array, share: Array, *, fractions: bool = True
) -> Separation:
    """The verdict where the working set's hulls meet as far as floats can tell."""
    level, powers = balanced(Z)
    found = meeting_near(level, share / powers)
    if found is not None:
        return _met(
            rows, index, found * powers, "a true meeting lies within rounding of the weights"
        )
    if fractions and Z.size <= TINY:
        return _in_fractions(rows, index, Z, share)
    return _met(rows, index, share, "")


def _in_fractions(rows: Rows, index: Array, Z: Array, share: Array) -> Separation:
    """Few rows: the simplex method in fractions has the last word on them."""
    meeting, v = first_phase(Z)
    if meeting is not None:
        exact = np.array([float(value) for value in meeting])
        return _met(rows, index, exact, "solved in fractions")
    plane = np.array([float(x / max(map(abs, v))) for x in v])
    frame = _fitted_frame(rows, index)
    for multiple in range(1, 100, 2):  # floats are dense enough for one of them
        coef, intercept = frame.back(multiple * plane)
        scores = rows.scores(coef, intercept)
        if surely_positive(rows, coef, intercept, scores):
            return _separated(rows, coef, intercept, scores)
    return _met(rows, index, share, "")


def _met(rows: Rows, index: Array, share: Array, proof: str) -> Separation:
    """The verdict of weights on the working set, each class scaled to one in sum."""
    weights = np.zeros(len(rows.signs))
    weights[index] = share / share.sum()
    if rows.intercept:
        for sign in (-1.0, 1.0):
            own = rows.signs == sign
            weights[own] /= weights[own].sum() or 1.0
    apart = np.abs(np.asarray(rows.X.T @ (rows.signs * weights))).max(initial=0.0)
    size = float(np.abs(rows.X).max()) or 1.0
    return _verdict(rows, weights=weights, residual=float(apart) / size, proof=proof)


def _widened(rows: Rows, verdict: Separation) -> Separation:
    """The widest plane, and the widest margin in the coordinates of the perceptron."""
    d = rows.X.shape[1]
    scores = rows.scores(verdict.coef, verdict.intercept)
    start = _seeds(rows, scores, _batch(rows))
    found = widen(rows, augmented(d), start)
    widest = max(found.margin, verdict.augmented_margin)
    verdict = verdict._replace(augmented_margin=widest)
    if rows.intercept and not np.isfinite(verdict.margin):
        return verdict
    if rows.intercept:
        found = widen(rows, affine(rows.dense(found.members)), found.members)
    bound = _hull_distance(rows, found)
    verdict = verdict._replace(margin_bound=bound)
    scores = rows.scores(found.coef, found.intercept)
    verdict = verdict._replace(margin=min(verdict.margin, bound))
    wider = found.margin >= verdict.margin
    if not wider or not surely_positive(rows, found.coef, found.intercept, scores):
        return verdict
    margin = min(found.margin, bound)
    return verdict._replace(coef=found.coef, intercept=found.intercept, margin=margin)


def _touch(rows: Rows, verdict: Separation) -> bool | None:
    """Whether a plane through the meeting has samples on one side of it only.

    Such a plane holds every sample of the meeting: in the directions that vanish on those, the
    others are separable from the origin, or meet it again, in fewer directions each time.
    """
    if rows.X.shape[1] > WIDE:
        return None
    support = np.flatnonzero(verdict.weights > 0)
    frame = _fitted_frame(rows, support)
    free = _vanishing(frame.into(rows, support))
    Z = frame.into(rows, np.arange(len(rows.signs))) if free.shape[1] else free
    while free.shape[1]:
        sizes = np.abs(Z).max(axis=1, initial=0.0)
        Z = Z @ free
        apart = np.abs(Z).max(axis=1, initial=0.0) > FAINT * sizes
        if not apart.any():
            return False
        Z = Z[apart]
        inner = separate(Z, np.ones(len(Z)), fit_intercept=False, widest=False)
        if inner.separable:
            return True
        free = _vanishing(Z[inner.weights > 0])
    return False


def _vanishing(Z: Array) -> Array:
    """An orthonormal basis of the directions in which all rows are zero."""
    return scipy.linalg.null_space(balanced(Z)[0], rcond=FAINT)


def _hull_distance(rows: Rows, plane: Plane) -> float:
    """Half the distance of the classes' weighted means; without intercept ‖Σ λ_i z_i‖."""
    signs, share = rows.signs[plane.members], plane.share
    if rows.intercept:
        share = np.where(signs > 0, share / share[signs > 0].sum(), share / share[signs < 0].sum())
    apart = float(np.linalg.norm(rows.dense(plane.members).T @ (signs * share)))
    return apart / 2 if rows.intercept else apart
