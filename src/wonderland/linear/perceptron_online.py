"""The perceptron's updates, one sample at a time, compiled; several two-class problems in one pass.

    y (w·x + b) ≤ 0   ⇒   w ← w + ηω y x,   b ← b + ηω y

A problem j gives each class a sign y ∈ {−1, 0, +1} (0: not its concern), so that each class against
the rest and each pair of classes share the pass: K scores of a sample are one product W·x. With a
penalty the coefficients shrink before each update (L2) or are clipped towards zero by the sum of
the steps due so far (L1, Tsuruoka et al. 2009), as in scikit-learn. Sparse rows are cut into pieces
of a few dozen entries; nothing is made dense. Shapes: X (n, d), W (K, d), b (K,), signs (k, K).
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from wonderland.core.arrays import in_float64

__all__ = ["Online", "Pass", "Rule", "Weights", "begin", "load_samples"]

Array = np.ndarray

PIECE = 32  # entries of a sparse row taken at once
BURST = 1 << 18  # samples between two looks at the clock
SMALL = 1 << 16  # rows up to which tables are padded, so that few shapes are compiled


class Rule(NamedTuple):
    """What a pass is to do, in numbers.

    Attributes:
        signs: (k, K) sign of class c in problem j.
        steps: (k, K) η times the weight of class c in problem j.
        shrink: Factor on W before each sample.
        clip: Step of the L1 penalty per sample.
        l2: Strength of ½‖w‖² in the objective.
        l1: Strength of ‖w‖₁ in the objective.
        intercept: 1 where b moves, 0 where it stays.
    """

    signs: Any
    steps: Any
    shrink: Any
    clip: Any
    l2: Any
    l1: Any
    intercept: Any

    @property
    def penalised(self) -> bool:
        """Whether anything shrinks."""
        return bool(self.shrink != 1 or self.clip != 0)


class Weights(eqx.Module):
    """What the passes move.

    Attributes:
        coef: W (K, d).
        intercept: b (K,).
        lag_coef: Σ over updates of (samples seen before) · (change of W): the mean of all W so far
            is W − lag/seen. With a penalty, the sum of W over all samples.
        lag_intercept: The same for b.
        seen: Samples seen (K,).
        due: L1 steps due so far, and `paid` (K, d) those taken.
        paid: (K, d).
    """

    coef: Any
    intercept: Any
    lag_coef: Any
    lag_intercept: Any
    seen: Any
    due: Any
    paid: Any


class Pass(NamedTuple):
    """What one pass over the samples showed.

    Attributes:
        weights: Afterwards.
        mistakes: (K,) samples on the wrong side when they came.
        loss: (K,) sum of max(0, −y·score) and of the penalties.
        wrong: (n, K) which they were, in order of their coming, where that was asked for.
    """

    weights: Weights
    mistakes: Any
    loss: Any
    wrong: Any


class Samples(NamedTuple):
    """The table as the compiled pass reads it, rows padded to a few shapes.

    Attributes:
        X: (m, d) dense; or (pieces, PIECE) entries of sparse rows.
        columns: () or (pieces, PIECE) the entries' columns; padding points behind the last one.
        first: () or (m + 1,) the first piece of each row.
        codes: (m,) class numbers.
        weight: (m,).
    """

    X: Any
    columns: Any
    first: Any
    codes: Any
    weight: Any


@in_float64
def begin(coef: Array, intercept: Array) -> Weights:
    """State before the first sample; copies, for what is passed on is overwritten."""
    W, b = jnp.array(coef, jnp.float64), jnp.array(intercept, jnp.float64)
    blank, zero = jnp.zeros_like(W), jnp.zeros_like(b)
    return Weights(W, b, blank, zero, zero, jnp.zeros(()), jnp.zeros_like(W))


@in_float64
def load_samples(X: Any, codes: Array, weight: Array | None) -> Samples:
    """Hand a table to the compiled pass."""
    n = X.shape[0]
    rows = max(8, 1 << (n - 1).bit_length()) if n < SMALL else n
    omega = np.ones(n) if weight is None else weight
    fixed = [jnp.asarray(_padded(np.asarray(v), rows)) for v in (codes, omega)]
    if not sp.issparse(X):
        none = jnp.zeros((0,), jnp.int64)
        return Samples(jnp.asarray(_padded(X, rows)), none, none, *fixed)
    return Samples(*_pieces(X, rows), *fixed)


def _padded(values: Array, rows: int) -> Array:
    if len(values) == rows:
        return values
    return np.concatenate([values, np.zeros((rows - len(values), *values.shape[1:]), values.dtype)])


def _pieces(X: Any, rows: int) -> tuple[Any, Any, Any]:
    """CSR rows cut into pieces of `PIECE` entries: (values, columns, first piece of each row)."""
    counts = np.diff(X.indptr)
    needed = -(-counts // PIECE)
    first = np.concatenate([[0], np.cumsum(needed)])
    total = int(first[-1])
    size = max(8, 1 << max(total - 1, 0).bit_length()) if total < SMALL else total
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(X.data)) - np.repeat(X.indptr[:-1], counts)
    place = (first[row] * PIECE + within).astype(np.int64)
    values, columns = np.zeros(size * PIECE), np.full(size * PIECE, X.shape[1])
    values[place], columns[place] = X.data, X.indices
    ends = np.full(rows + 1 - len(first), total)
    return (
        jnp.asarray(values.reshape(size, PIECE)),
        jnp.asarray(columns.reshape(size, PIECE)),
        jnp.asarray(np.concatenate([first, ends])),
    )


class Online(NamedTuple):
    """Passes over one table under one rule.

    Attributes:
        samples: From `load_samples`.
        rule: Signs, steps, penalties.
        log: Whether to note which samples were wrong.
        mean: Whether to keep what the mean of all W needs.
    """

    samples: Samples
    rule: Rule
    log: bool = False
    mean: bool = False

    @in_float64
    def run(self, weights: Weights, order: Array, active: Array) -> Pass:
        """One pass in the given order over some rows, for the problems that are still active."""
        problems = len(active)
        size = max(8, 1 << (len(order) - 1).bit_length()) if len(order) < SMALL else len(order)
        begun = Pass(
            weights,
            jnp.zeros(problems, jnp.int64),
            jnp.zeros(problems),
            jnp.zeros((size if self.log else 0, problems), bool),
        )
        visit = _sparse_pass if self.samples.columns.size else _dense_pass
        rule = Rule(*(jnp.asarray(value, jnp.float64) for value in self.rule))
        rows, on = jnp.asarray(_padded(order, size)), jnp.asarray(active, jnp.float64)
        for start in range(0, len(order), BURST):
            span = jnp.asarray([start, min(start + BURST, len(order))])
            begun = visit(
                begun,
                self.samples,
                rule,
                rows,
                on,
                span,
                penalised=self.rule.penalised,
                mean=self.mean,
            )
        return begun


def _judge(scores: Any, rule: Rule, code: Any, weight: Any, on: Any) -> tuple[Any, Any, Any]:
    """(change of b before the intercept's switch, wrong, loss) of one sample, each (K,)."""
    sign = rule.signs[code] * on
    wrong = (sign * scores <= 0) & (sign != 0)
    change = jnp.where(wrong, sign * rule.steps[code] * weight, 0.0)
    return change, wrong, jnp.maximum(-sign * scores, 0.0)


def _noted(done: Pass, i: Any, wrong: Any) -> Any:
    return done.wrong.at[i].set(wrong) if done.wrong.shape[0] else done.wrong


@partial(jax.jit, static_argnames=("penalised", "mean"))
def _dense_pass(
    begun: Pass,
    samples: Samples,
    rule: Rule,
    order: Any,
    on: Any,
    span: Any,
    *,
    penalised: bool,
    mean: bool,
) -> Pass:
    before, start = begun.weights, span[0]

    def visit(i: Any, done: Pass) -> Pass:
        row, w = order[i], done.weights
        x = samples.X[row]
        scores = jnp.sum(w.coef * x[None, :], axis=1) + w.intercept
        change, wrong, loss = _judge(scores, rule, samples.codes[row], samples.weight[row], on)
        moved, step = change[:, None] * x[None, :], change * rule.intercept
        coef, paid = w.coef + moved, w.paid
        if penalised:
            loss = loss + on * _penalty(w.coef, rule)
            coef = w.coef * jnp.where(on > 0, rule.shrink, 1.0)[:, None] + moved
            coef, paid = _clipped(coef, paid, before.due + (i - start + 1) * rule.clip, on)
        intercept = w.intercept + step
        lag = w.lag_coef, w.lag_intercept
        if mean and penalised:
            lag = lag[0] + coef * on[:, None], lag[1] + intercept * on
        elif mean:
            seen = before.seen + (i - start) * on
            lag = lag[0] + moved * seen[:, None], lag[1] + step * seen
        after = Weights(coef, intercept, *lag, w.seen, w.due, paid)
        return Pass(after, done.mistakes + wrong, done.loss + loss, _noted(done, i, wrong))

    done = jax.lax.fori_loop(start, span[1], visit, begun)
    return done._replace(weights=_counted(done.weights, rule, on, span[1] - start))


def _counted(w: Weights, rule: Rule, on: Any, count: Any) -> Weights:
    """The state with `count` more samples seen."""
    now = w.seen + count * on, w.due + count * rule.clip
    return eqx.tree_at(lambda v: (v.seen, v.due), w, now)


def _penalty(coef: Any, rule: Rule) -> Any:
    return 0.5 * rule.l2 * jnp.sum(coef**2, axis=1) + rule.l1 * jnp.sum(jnp.abs(coef), axis=1)


def _clipped(coef: Any, paid: Any, due: Any, on: Any) -> tuple[Any, Any]:
    """Towards zero by what the L1 penalty still has to take, never across it."""
    down = jnp.maximum(coef - (due + paid), 0.0)
    up = jnp.minimum(coef + (due - paid), 0.0)
    clipped = jnp.where(coef > 0, down, jnp.where(coef < 0, up, coef))
    clipped = jnp.where(on[:, None] > 0, clipped, coef)
    return clipped, paid + (clipped - coef)


@partial(jax.jit, static_argnames=("penalised", "mean"))
def _sparse_pass(
    begun: Pass,
    samples: Samples,
    rule: Rule,
    order: Any,
    on: Any,
    span: Any,
    *,
    penalised: bool,
    mean: bool,
) -> Pass:
    """The same for sparse rows without a penalty; W is kept as (d + 1, K), its last row unused."""
    del penalised
    before, origin = begun.weights, span[0]

    def visit(i: Any, carried: tuple[Any, Any, Pass]) -> tuple[Any, Any, Pass]:
        W, lag, done = carried
        row, w = order[i], done.weights
        start, stop = samples.first[row], samples.first[row + 1]
        scores = jax.lax.fori_loop(
            start,
            stop,
            lambda p, total: total + samples.X[p] @ W[samples.columns[p]],
            w.intercept,
        )
        change, wrong, loss = _judge(scores, rule, samples.codes[row], samples.weight[row], on)
        seen = before.seen + (i - origin) * on

        def add(p: Any, both: tuple[Any, Any]) -> tuple[Any, Any]:
            moved = samples.X[p][:, None] * change[None, :]
            at = samples.columns[p]
            other = both[1].at[at].add(moved * seen[None, :]) if mean else both[1]
            return both[0].at[at].add(moved), other

        # A sample on its own side has nothing to add.
        W, lag = jax.lax.fori_loop(start, jnp.where(wrong.any(), stop, start), add, (W, lag))
        step = change * rule.intercept
        after = eqx.tree_at(
            lambda v: (v.intercept, v.lag_intercept),
            w,
            (w.intercept + step, w.lag_intercept + step * seen),
        )
        new = Pass(after, done.mistakes + wrong, done.loss + loss, _noted(done, i, wrong))
        return W, lag, new

    ground = jnp.zeros((1, len(on)))
    W = jnp.concatenate([before.coef.T, ground])
    lag = jnp.concatenate([before.lag_coef.T, ground])
    W, lag, done = jax.lax.fori_loop(origin, span[1], visit, (W, lag, begun))
    after = eqx.tree_at(lambda v: (v.coef, v.lag_coef), done.weights, (W[:-1].T, lag[:-1].T))
    return done._replace(weights=_counted(after, rule, on, span[1] - origin))
