"""Direct least squares: measure the conditioning, take the cheapest method it allows.

Gram + Cholesky where the condition number allows, corrected on the data where it asks for it, QR
with refinement in doubled precision beyond, minimum norm where columns are dependent. See
`solve.choose` for the thresholds, `solve.normal` and `solve.refine` for the methods.
"""

import numpy as np
import scipy.linalg as sl

from wonderland.core.blocks import calm
from wonderland.core.doubled import Doubled, two_product
from wonderland.core.errors import NotFiniteError
from wonderland.solve.bounds import UNIT, rounding_bound, wide_bound
from wonderland.solve.choose import GRAM, Method, after_gram, before_gram
from wonderland.solve.moments import Moments, host_moments
from wonderland.solve.normal import (
    Scaled,
    correct,
    moment_bound,
    residual_moments,
    scale,
    spread_intercept,
)
from wonderland.solve.problem import Array, LeastSquares, LinearFit, doubled_columns
from wonderland.solve.refine import EPS, Factors, factorise, solve_augmented

__all__ = ["FAINT", "moments_sound", "solve_direct", "solve_from", "solve_levels", "ties_of_gram"]

CANCELS = 1e-6  # share of Σω(y−ȳ)² below which Σωr² from moments has lost too many digits
FAINT = 1e-10  # centred over raw second moment below which a column is called nearly constant


def solve_direct(problem: LeastSquares) -> LinearFit:
    """Solve the problem, output groups of equal penalty together."""
    levels = np.unique(problem.alpha)
    n, d = problem.X.shape
    with calm(float(n) * d * min(n, d)):
        if len(levels) == 1:
            return _solve_level(problem)
        if problem.small or n < d:
            parts = {level: _solve_level(_outputs(problem, level)) for level in levels}
            return merge(problem, parts)
    return solve_levels(problem, host_moments(problem))


def solve_levels(problem: LeastSquares, moments: Moments, *, corrected: bool = False) -> LinearFit:
    """Outputs with penalties of their own, from moments gathered once."""

    def one(level: float) -> LinearFit:
        here = problem.alpha == level
        some = moments._replace(
            mean_y=moments.mean_y[here], cross=moments.cross[:, here], power=moments.power[here]
        )
        return solve_from(_outputs(problem, level), some, corrected=corrected)

    parts = {level: one(level) for level in np.unique(problem.alpha)}
    return parts[problem.alpha[0]] if len(parts) == 1 else merge(problem, parts)


def solve_from(problem: LeastSquares, moments: Moments, *, corrected: bool = False) -> LinearFit:
    """Solve a tall problem whose moments are already known, one penalty for all outputs.

    Args:
        problem: The data, looked at again only where the conditioning asks for it.
        moments: Their second moments.
        corrected: Correct on the data in any case.
    """
    if not moments_sound(moments):
        return _refined(problem, before_gram(small=False, dual=False, scaled=False)[1])
    with calm(4.0 * len(moments.gram) ** 3):
        scaled = scale(moments.gram, float(problem.alpha[0]))
        method, reason = after_gram(scaled.condition)
        if method is not Method.REFINED:
            corrected = corrected or method is Method.CORRECTED
            return solve_moments(problem, moments, scaled, corrected=corrected)
    return _refined(problem, reason)


def ties_of_gram(gram: Array, alpha: Array) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Dependent columns as seen in G (d, d), whose columns depend on each other as X's do."""
    if np.all(alpha > 0):
        return ()
    norms = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    return _ties(factorise(gram / norms / norms[:, None]), 0)


def _outputs(problem: LeastSquares, level: float) -> LeastSquares:
    """The outputs whose penalty is `level`."""
    here = problem.alpha == level
    return problem._replace(y=problem.y[:, here], alpha=problem.alpha[here])


def _solve_level(problem: LeastSquares) -> LinearFit:
    """All outputs share one penalty."""
    n, d = problem.X.shape
    wide = n < d
    if wide and not np.isfinite(problem.X.sum()):
        raise NotFiniteError("X holds NaN or infinity")
    dual = wide and float(problem.alpha[0]) > 0
    method, reason = before_gram(small=problem.small, dual=dual, scaled=True)
    if method is Method.DUAL:
        return _dual(problem, reason)
    if wide:
        return _rows_first(problem)
    if method is Method.REFINED:
        return _refined(problem, reason)
    return solve_from(problem, host_moments(problem))


def moments_sound(moments: Moments) -> bool:
    """Whether the moments are finite and no column is constant up to rounding."""
    diagonal = np.diag(moments.gram)
    raw = diagonal + moments.mass * moments.mean_x**2
    return bool(np.isfinite(moments.gram).all() and np.all(diagonal > FAINT * raw))


def solve_moments(
    problem: LeastSquares, moments: Moments, scaled: Scaled, *, corrected: bool
) -> LinearFit:
    """Answer from second moments, corrected on the data when the conditioning asks for it."""
    alpha = float(problem.alpha[0])
    n = problem.X.shape[0]
    method, reason = after_gram(scaled.condition)
    coef, step = scaled.solve(moments.cross), np.zeros_like(moments.cross)
    rss = moments.power - np.einsum("dt,dt->t", coef, 2 * moments.cross - moments.gram @ coef)
    if corrected:
        coef, step, rss = correct(problem, moments, scaled, coef, alpha)
    elif np.any(rss < CANCELS * moments.power):
        intercept = moments.mean_y - moments.mean_x @ coef
        rss = residual_moments(problem, coef, intercept)[2]
    inverse = scaled.inverse()
    error = moment_bound(moments, coef, inverse, rss, rows=n, squared=not corrected)
    error[1:] += step
    if problem.fit_intercept:
        inverse = spread_intercept(moments, inverse)
    slack = moments.cross - moments.gram @ coef - alpha * coef
    norms = np.sqrt(np.diag(moments.gram))[:, None] * np.sqrt(moments.power)
    return LinearFit(
        coef=coef,
        intercept=moments.mean_y - moments.mean_x @ coef,
        inverse=inverse,
        rss=rss,
        rank=len(coef),
        condition=scaled.condition,
        condition_how=scaled.how,
        gradient=_largest_ratio(slack, norms),
        error=error if problem.fit_intercept else error[1:],
        collinear=(),
        solver=str(method),
        reason=reason,
    )


def _largest_ratio(slack: Array, norms: Array) -> float:
    return float(np.max(np.abs(slack) / np.where(norms > 0, norms, 1.0), initial=0.0))


def _refined(problem: LeastSquares, reason: str) -> LinearFit:
    """QR with refinement in doubled precision; minimum norm where columns are dependent."""
    A, b = _weighted(problem)
    first = int(problem.fit_intercept)
    n, p = A.high.shape
    alpha = float(problem.alpha[0])
    if alpha > 0:
        # Ridge is least squares on data augmented by √α·I with targets 0.
        extra = np.hstack([np.zeros((p - first, first)), np.sqrt(alpha) * np.eye(p - first)])
        A = Doubled(np.vstack([A.high, extra]), np.vstack([A.low, 0.0 * extra]))
        b = Doubled(*(np.vstack([part, np.zeros((p - first, part.shape[1]))]) for part in b))
    factors = factorise(A.high, first)
    refine = problem.small or n > p
    zero = np.zeros((p, b.high.shape[1]))
    beta, residual, change = solve_augmented(A, b, zero, factors, refine=refine)
    full = factors.rank == p
    inverse = _inverse(A, factors, refine=problem.small) if full else None
    if not full:
        beta = _minimum_norm(beta, factors, first)
    intercept = beta[0] if first else np.zeros(beta.shape[1])
    r = residual[:n]
    gradient = A.high[:, first:].T @ residual
    norms = np.sqrt((A.high[:, first:] ** 2).sum(axis=0))[:, None]
    norms = norms * np.sqrt((b.high**2).sum(axis=0))
    return LinearFit(
        coef=beta[first:],
        intercept=intercept,
        inverse=inverse,
        rss=(r**2).sum(axis=0),
        rank=factors.rank - first,
        condition=_condition(factors, first),
        singular=_singular(factors, first),
        condition_how="singular values of the scaled, centred triangle",
        gradient=_largest_ratio(gradient, norms),
        error=_refined_error(problem, beta, r, inverse, change),
        collinear=() if n < p else _ties(factors, first),
        solver=str(Method.REFINED if full else Method.MINIMUM_NORM),
        reason=reason if full else f"{reason}; {p - factors.rank} dependent columns",
    )


def _weighted(problem: LeastSquares) -> tuple[Doubled, Doubled]:
    """√Ω·[1, X] (n, p) and √Ω·y (n, t), in doubled precision."""
    Z, root = doubled_columns(problem), problem.root_weight()
    if root is None:
        return Z, Doubled.of(problem.y)
    high, low = two_product(Z.high, root)
    return Doubled(high, low + root * Z.low), Doubled(*two_product(problem.y, root))


def _inverse(A: Doubled, factors: Factors, *, refine: bool) -> Array:
    """(AᵀA)⁻¹ (p, p), each column refined like a coefficient when asked."""
    p = A.high.shape[1]
    if refine:
        columns = solve_augmented(A, Doubled.of(np.zeros_like(A.high)), -np.eye(p), factors)[0]
        return (columns + columns.T) / 2
    root = factors.scale[factors.order][:, None] * sl.solve_triangular(factors.R, np.eye(p))
    inverse = np.empty((p, p))
    inverse[np.ix_(factors.order, factors.order)] = root @ root.T
    return inverse


def _minimum_norm(beta: Array, factors: Factors, first: int) -> Array:
    """Among all solutions the one with the smallest slopes: take away their null-space part."""
    p, rank = len(beta), factors.rank
    null = np.zeros((p, p - rank))
    null[factors.order[:rank]] = -factors.ties
    null[factors.order[rank:]] = np.eye(p - rank)
    null *= factors.scale[:, None]
    null /= np.sqrt((null**2).sum(axis=0))
    return beta - null @ np.linalg.lstsq(null[first:], beta[first:], rcond=None)[0]


def _condition(factors: Factors, first: int) -> float:
    """κ of the centred columns: in R the intercept row is what centring takes away."""
    triangle = factors.R[first:, first:]
    if triangle.size == 0:
        return 1.0
    norms = np.sqrt((triangle**2).sum(axis=0))
    values = np.linalg.svd(triangle / norms, compute_uv=False)
    return float(values[0] / values[-1])


def _singular(factors: Factors, first: int) -> Array:
    """Singular values of the centred columns themselves, dependent ones included (with zeros)."""
    whole = np.hstack([factors.R, factors.R @ factors.ties])[first:, first:]
    values = np.linalg.svd(whole / factors.scale[factors.order[first:]], compute_uv=False)
    return np.concatenate([values, np.zeros(whole.shape[1] - len(values))])


def _ties(factors: Factors, first: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Which kept columns reproduce each dependent one (slope indices; the intercept is implied)."""
    kept, dropped = factors.order[: factors.rank], factors.order[factors.rank :]
    return tuple(
        (
            int(j - first),
            tuple(sorted(int(k - first) for k in kept[np.abs(tie) > 1e-8] if k >= first)),
        )
        for j, tie in zip(dropped, factors.ties.T, strict=True)
    )


def _refined_error(
    problem: LeastSquares, beta: Array, residual: Array, inverse: Array | None, change: Array
) -> Array:
    """Rounding bound plus the last correction; without an inverse nothing is promised."""
    if inverse is None:
        return np.full(beta.shape, np.inf)
    root = problem.root_weight()
    plain = residual if root is None else residual / np.where(root > 0, root, 1.0)
    solver = 0.0 if root is None else 2 * UNIT
    return rounding_bound(problem, beta, plain, inverse, solver=solver) + change


def _rows_first(problem: LeastSquares) -> LinearFit:
    """More columns than rows: the solution lies in the row space, X̃ᵀ = QR, w = Q z.

    Repeated rows make that space smaller: its dimension is found first, so that the reduced
    problem X̃Q z = ỹ always has independent columns.
    """
    mean_x, mean_y, X, y = _centred(problem)
    if problem.fit_intercept:
        X, y = _without_mean(problem, X), _without_mean(problem, y)
    Q = factorise(_without_noise(problem, X).T, square=True).Q
    reduced = LeastSquares(X @ Q, y, None, problem.alpha, fit_intercept=False)
    fit = _refined(reduced, "fewer rows than columns: solved in the row space")
    coef = Q @ fit.coef
    return fit._replace(
        coef=coef,
        intercept=mean_y - mean_x @ coef,
        inverse=None,
        error=_wide_error(problem, coef, y - X @ coef, fit),
        collinear=(),
    )


def _wide_error(problem: LeastSquares, coef: Array, residual: Array, fit: LinearFit) -> Array:
    """`wide_bound` with the smallest singular value of the reduced table."""
    if fit.singular is None or not len(fit.singular):
        return np.zeros((problem.parameters, coef.shape[1]))
    reach = 1.0 / float(fit.singular[-1]) if fit.singular[-1] > 0 else np.inf
    return wide_bound(problem, coef, residual, reach=reach, slack=np.zeros(coef.shape[1]))


def _centred(problem: LeastSquares) -> tuple[Array, Array, Array, Array]:
    """Weighted means x̄ (d,), ȳ (t,) and the centred rows √ω(x − x̄), √ω(y − ȳ)."""
    weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight
    share = float(problem.fit_intercept) * weight / weight.sum()
    mean_x, mean_y, root = share @ problem.X, share @ problem.y, np.sqrt(weight)[:, None]
    return mean_x, mean_y, root * (problem.X - mean_x), root * (problem.y - mean_y)


def _without_mean(problem: LeastSquares, rows: Array) -> Array:
    """N centred rows as n − 1 rows of the same inner products.

    Centred rows are dependent (Σ√ω·row = 0), which rounding would hide from a rank decision; the
    Householder reflection that maps √ω to the first axis makes that dependence the row dropped.
    """
    axis = np.ones((len(rows), 1)) if problem.weight is None else np.sqrt(problem.weight)[:, None]
    mirror = axis / np.sqrt((axis**2).sum())
    mirror[0] += 1.0
    return rows[1:] - mirror[1:] * ((mirror.T @ rows) / mirror[0])


def _without_noise(problem: LeastSquares, rows: Array) -> Array:
    """Rows that centring left at rounding level are zero: scaling must not make them look real."""
    raw = np.sqrt((problem.X**2).sum(axis=1).max(initial=0.0))
    if problem.weight is not None:
        raw *= np.sqrt(problem.weight.max())
    norms = np.sqrt((rows**2).sum(axis=1))
    return np.where(norms[:, None] > 16 * EPS * raw, rows, 0.0)


def _dual(problem: LeastSquares, reason: str) -> LinearFit:
    """Ridge with n < d: w = X̃ᵀ(X̃X̃ᵀ + αI)⁻¹ỹ, refined once on its own n × n residual."""
    alpha = float(problem.alpha[0])
    mean_x, mean_y, X, y = _centred(problem)
    if problem.fit_intercept:
        X, y = _without_mean(problem, X), _without_mean(problem, y)
    kernel = X @ X.T
    scaled = scale(kernel, alpha)
    if scaled.root is None or scaled.condition > GRAM:
        return _rows_first(problem)
    z = scaled.solve(y)
    step = scaled.solve(y - X @ (X.T @ z) - alpha * z)
    z += step
    coef = X.T @ z
    residual = y - X @ coef
    # The Gram matrix was rounded: each step leaves κ²·c·u of the one before.
    left = scaled.condition**2 * UNIT * (10.0 + np.sqrt(X.shape[1]))
    slack = left * np.sqrt(((X.T @ step) ** 2).sum(axis=0))
    # λ_min(K + αI) ≥ min diagonal/κ² of the scaled matrix; and σ/(σ² + α) ≤ 1/(2√α).
    least = np.sqrt(np.diag(kernel).min(initial=np.inf) + alpha)
    reach = min(0.5 / np.sqrt(alpha), scaled.condition / least)
    norms = np.sqrt((X**2).sum(axis=0))[:, None] * np.sqrt((y**2).sum(axis=0))
    return LinearFit(
        coef=coef,
        intercept=mean_y - mean_x @ coef,
        inverse=None,
        rss=(residual**2).sum(axis=0),
        rank=min(X.shape),
        condition=scaled.condition,
        condition_how=scaled.how,
        gradient=_largest_ratio(X.T @ residual - alpha * coef, norms),
        error=wide_bound(problem, coef, residual, reach=reach, slack=slack),
        collinear=(),
        solver=str(Method.DUAL),
        reason=reason,
    )


def merge(problem: LeastSquares, parts: dict[float, LinearFit]) -> LinearFit:
    """Put outputs of different penalties back in their places; claims take the worst."""
    fits = list(parts.values())
    t = problem.y.shape[1]
    coef, error = np.empty((problem.X.shape[1], t)), np.empty((problem.parameters, t))
    intercept, rss = np.empty(t), np.empty(t)
    for level, fit in parts.items():
        here = problem.alpha == level
        coef[:, here], error[:, here] = fit.coef, fit.error
        intercept[here], rss[here] = fit.intercept, fit.rss
    worst = max(fits, key=lambda fit: fit.condition)
    return worst._replace(
        coef=coef,
        intercept=intercept,
        rss=rss,
        error=error,
        inverse=None,
        rank=min(fit.rank for fit in fits),
        gradient=max(fit.gradient for fit in fits),
    )
