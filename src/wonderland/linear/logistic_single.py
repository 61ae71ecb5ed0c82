"""A dense table in single precision, transposed and cut into blocks, with passes by XLA.

What leads up to the last steps of a softmax fit is dozens of passes of few flops per entry. XLA's
products of a short matrix with a transposed table take half the time of BLAS, and a whole block
(scores, residuals, gradient) is one program. Block j holds the rows j, j + N, j + 2N, …, so that a
few blocks are a fair sample of all rows. Columns that are zero in every row keep the coefficient
they have and take no part.

Shapes: N blocks of r rows; X̃ᵀ (q, r) with the ones of the intercept as its last row, W (c, q).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wonderland.linear.logistic_curvature import Shared
from wonderland.linear.logistic_problem import Logistic, Total, objective
from wonderland.solve.newton import Ask, End, Found, Pair
from wonderland.solve.newton_metric import Diagonal, Embedded, Metric

__all__ = ["SingleTable", "single_of"]

ROWS = 2048  # of a block: long beside the dispatch of its program
STEP = 64  # block lengths are multiples, so that tables of similar lengths share a program
WORTH = 2e7  # multiplications of one pass from which compiling a program for it pays off


class _Block(NamedTuple):
    """X̃ᵀ (q, r), class numbers (r,), ω (r,), zero where rows have run out."""

    table: jax.Array
    codes: jax.Array
    weight: jax.Array


class SingleTable(NamedTuple):
    """One problem on blocks in single precision.

    Attributes:
        blocks: The rows.
        problem: The problem over the live columns; of its X only the shape is there.
        live: Numbers of the columns that are not zero throughout.
    """

    blocks: list[_Block]
    problem: Logistic
    live: np.ndarray

    def part(self, count: int) -> "SingleTable":
        """The problem on the first `count` blocks."""
        chosen = self.blocks[:count]
        weight = np.concatenate([block.weight for block in chosen]).astype(np.float64)
        few = self.problem._replace(weight=weight) if weight.any() else self.problem
        return self._replace(blocks=chosen, problem=few)

    def shorten(self, theta: np.ndarray, problem: Logistic) -> np.ndarray:
        """θ over the live columns, from θ (p,) of the whole problem."""
        coef, intercept = problem.split(theta)
        return self.problem.join(coef[:, self.live], intercept)

    def lengthen(self, theta: np.ndarray, before: np.ndarray, problem: Logistic) -> np.ndarray:
        """θ (p,) with what was found on the live columns; the others are at their optimum."""
        coef, intercept = self.problem.split(theta)
        centre = 0.0 if problem.centre is None else problem.centre
        resting = np.where(problem.penalty[0] > 0, centre, problem.split(before)[0])
        full = np.array(resting)
        full[:, self.live] = coef
        return problem.join(full, intercept)

    def learnt(self, end: End, problem: Logistic) -> tuple[Metric, list[Pair]]:
        """The metric and the pairs of the whole problem from those on the live columns."""
        if len(self.live) == problem.X.shape[1]:
            return end.metric, list(end.pairs)
        numbers = np.arange(problem.columns * problem.width)
        places = self.shorten(numbers, problem)

        def spread(short: np.ndarray) -> np.ndarray:
            whole = np.zeros(len(numbers))
            whole[places] = short
            return whole

        pairs = [Pair(spread(s), spread(y), spread(v), curved) for s, y, v, curved in end.pairs]
        return Embedded(end.metric, places, len(numbers)), pairs

    def oracle(self) -> Callable[[Sequence[int], Sequence[Ask]], list[Found]]:
        """evaluate(which, asks) for `drive`, of one search."""

        def evaluate(_: Sequence[int], asks: Sequence[Ask]) -> list[Found]:
            ask = asks[0]
            total = self.sweep(ask.theta, hessian=ask.hessian)
            if ask.hessian and not np.isfinite(total.hessian).all():  # beyond single precision
                return [Found(np.nan, ask.theta, Diagonal(np.ones_like(ask.theta)))]
            value, gradient = objective(self.problem, ask.theta[None], total)
            metric = Shared().metric(total.hessian, self.problem) if ask.hessian else None
            return [Found(float(value[0]), gradient[0], metric)]

        return evaluate

    def sweep(self, theta: np.ndarray, *, hessian: bool) -> Total:
        """Sums over all rows at θ (p,), those of `Shared` among them where asked for."""
        with np.errstate(over="ignore"):  # a step too far: its loss is not finite, and told so
            W = theta.reshape(self.problem.columns, -1).astype(np.float32)
        at = jax.device_put(W)
        parts = jax.device_get([_pass(*block, at, hessian=hessian) for block in self.blocks])
        loss = sum(float(np.sum(part[0], dtype=np.float64)) for part in parts)
        slope = np.asarray(np.sum([part[1] for part in parts], axis=0, dtype=np.float64))
        # The metric may be rough: its sums stay in single precision.
        sums = sum(np.concatenate([part[2].ravel(), part[3].ravel()]) for part in parts)
        return Total(np.array([loss]), slope[None], sums if hessian else None)


@partial(jax.jit, static_argnames=("hessian",))
def _pass(
    table: jax.Array, codes: jax.Array, weight: jax.Array, W: jax.Array, *, hessian: bool
) -> tuple[jax.Array, ...]:
    """ωℓ of each row (r,), Σω(p − y)x̃ᵀ (c, q), and both factors of `Shared` or nothing."""
    Z = W @ table
    loss, residual, P = _two(Z, codes) if len(W) == 1 else _many(Z, codes)
    omega = weight[None]
    slope = (residual * omega) @ table.T
    if not hessian:
        nothing = jnp.zeros((0,), table.dtype)
        return loss * weight, slope, nothing, nothing
    share = P * omega
    A = jnp.diag(share.sum(axis=1)) - share @ P.T
    B = (table * (share * (1.0 - P)).sum(axis=0)[None]) @ table.T
    return loss * weight, slope, A, B


def _two(Z: jax.Array, codes: jax.Array) -> tuple[jax.Array, ...]:
    """As `logistic_problem.losses` for two classes: P is the probability of the other class."""
    sign = (1 - 2 * codes).astype(Z.dtype)[None]
    u = Z * sign
    q = jax.nn.sigmoid(u)
    return jax.nn.softplus(u)[0], q * sign, q


def _many(Z: jax.Array, codes: jax.Array) -> tuple[jax.Array, ...]:
    """Loss, residual and probabilities of k classes; 1 − p keeps its digits."""
    hot = codes[None] == jnp.arange(len(Z), dtype=codes.dtype)[:, None]
    top = Z.max(axis=0)
    powers = jnp.exp(Z - top[None])
    lead = jnp.where(hot, Z, 0.0).sum(axis=0) - top
    rest = jnp.where(hot, 0.0, powers).sum(axis=0)
    total = powers.sum(axis=0)
    loss = jnp.where(lead == 0, jnp.log1p(rest), jnp.log(total) - lead)
    residual = jnp.where(hot, -rest[None], powers) / total[None]
    return loss, residual, powers / total[None]


def single_of(problem: Logistic) -> SingleTable | None:
    """The blocks of one dense problem; None where compiling would cost more than it saves."""
    n, d = problem.X.shape
    if problem.fits > 1 or float(n) * d * problem.columns < WORTH:
        return None
    count = -(-n // ROWS)
    length = -(-n // (count * STEP)) * STEP
    live = _live(problem.X, count)
    weight = np.ones(n) if problem.weight is None else np.atleast_2d(problem.weight)[0]

    blocks = [_block(problem, weight, live, (j, count, length)) for j in range(count)]
    X = np.broadcast_to(np.float32(0.0), (n, len(live)))
    centre = None if problem.centre is None else problem.centre[:, live]
    few = problem._replace(X=X, penalty=problem.penalty[:, live], centre=centre)
    return SingleTable(blocks, few, live)


def _block(
    problem: Logistic, weight: np.ndarray, live: np.ndarray, cut: tuple[int, int, int]
) -> _Block:
    """Every N-th row from j on."""
    j, count, length = cut
    rows, d = problem.X[j::count], len(live)
    with np.errstate(over="ignore"):
        turned = np.ascontiguousarray(rows.astype(np.float32).T)
    table = np.zeros((d + int(problem.fit_intercept), length), np.float32)
    table[:d, : len(rows)] = turned if d == len(turned) else turned[live]
    table[d:, : len(rows)] = 1.0
    codes, omega = np.zeros(length, np.int32), np.zeros(length, np.float32)
    codes[: len(rows)], omega[: len(rows)] = problem.codes[j::count], weight[j::count]
    return _Block(*jax.device_put((table, codes, omega)))


def _live(X: np.ndarray, count: int) -> np.ndarray:
    """Columns with an entry that is not zero: looked for in a sample first."""
    seen = np.asarray(X[::count].any(axis=0))
    dark = np.flatnonzero(~seen)
    if len(dark):
        seen[dark] = X[:, dark].any(axis=0)
    return np.flatnonzero(seen)
