"""Pass after pass of the perceptron, and when to stop.

Stops when no mistake is left, when neither the training loss falls nor the validation score rises
by more than `tol` for some passes, after `max_iter` passes, or when time is up. Each two-class
problem stops by itself. In a fixed order the state after a pass decides all that follows: when it
comes back, the run cycles (Block & Levin 1970), and is wound forward to where it would end.
"""

import hashlib
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wonderland.core.errors import InputError, NotFiniteError
from wonderland.core.status import Status
from wonderland.linear.perceptron_online import Online, Pass, Rule, Weights, begin, load_samples

__all__ = ["Ended", "Halting", "Voters", "run_epochs"]

Array = np.ndarray

DENSE = 1 << 24  # entries up to which a sparse table with a penalty is made dense
MOST = 1 << 26  # numbers that voters may take


class Halting(NamedTuple):
    """When to stop, and in which order samples come.

    Attributes:
        limit: Most passes.
        tol: What counts as an improvement; None never stops for lack of one.
        patience: Passes without improvement.
        seconds: Most time.
        seed: Of the order and of the validation part; None for the order of the table.
        shuffle: Whether every pass takes another order.
        part: Share of samples set aside to judge on.
        variant: "last", "averaged" or "voted".
        told: Whether to print a line for each pass.
    """

    limit: int
    tol: float | None
    patience: int
    seconds: float | None
    seed: int | None
    shuffle: bool = False
    part: float | None = None
    variant: str = "last"
    told: bool = False


class Voters(NamedTuple):
    """Every w on the way with the number of samples it survived, problem by problem.

    Attributes:
        coef: One (M, d + 1) table for each problem, the last column being b.
        votes: One (M,) for each problem.
    """

    coef: tuple[Array, ...]
    votes: tuple[Array, ...]


class Ended(NamedTuple):
    """How a run ended.

    Attributes:
        coef: W (K, d) of the variant asked for.
        intercept: b (K,).
        last: (W, b) after the last sample.
        epochs: Passes made.
        mistakes: All updates (K,).
        wrong: Mistakes of the last pass (K,).
        cycle: (first, length) of a state that came back, in passes, for each problem; or None.
        status: Why it stopped.
        voters: Where they were asked for.
        aside: Samples set aside (m,).
    """

    coef: Array
    intercept: Array
    last: tuple[Array, Array]
    epochs: int
    mistakes: Array
    wrong: Array
    cycle: tuple[tuple[int, int] | None, ...]
    status: Status
    voters: Voters | None
    aside: Array


def run_epochs(
    data: tuple[Any, Array, Array | None],
    rule: Rule,
    start: tuple[Array, Array],
    halting: Halting,
) -> Ended:
    """Pass over the samples until a rule of `halting` applies.

    Args:
        data: X (n, d), class numbers (n,), weights (n,) or None.
        rule: Signs, steps and penalties.
        start: W (K, d) and b (K,).
        halting: When to stop.
    """
    run = _Run(data, rule, start, halting)
    began = time.monotonic()
    try:
        while run.status is Status.RUNNING:
            run.step()
            late = halting.seconds is not None and time.monotonic() - began >= halting.seconds
            if run.status is Status.RUNNING and late:
                run.status = Status.TIME
    except KeyboardInterrupt:
        run.status = Status.INTERRUPTED
    return run.end()


class _Run:
    """The state between passes."""

    def __init__(
        self,
        data: tuple[Any, Array, Array | None],
        rule: Rule,
        start: tuple[Array, Array],
        halting: Halting,
    ) -> None:
        self.X, self.codes, weight = data
        self.weight = np.ones(len(self.codes)) if weight is None else weight
        self.rule, self.halting = rule, halting
        self.rng = np.random.default_rng(halting.seed)
        self.order, self.aside = self._split()
        if sp.issparse(self.X) and rule.penalised:
            self.X = _made_dense(self.X)
        log = halting.variant == "voted"
        mean = halting.variant != "last"
        self.online = Online(load_samples(self.X, self.codes, weight), rule, log, mean)
        self.weights: Weights = begin(*start)
        problems = len(start[1])
        self.active = np.ones(problems)
        self.best, self.stale = np.full(problems, np.inf), np.zeros(problems, int)
        self.mistakes = np.zeros(problems, int)
        self.wrong = np.zeros(problems, int)
        self.cycle: list[tuple[int, int] | None] = [None] * problems
        self.seen: list[dict[bytes, int]] = [{} for _ in range(problems)]
        self.epochs, self.limit, self.status = 0, halting.limit, Status.RUNNING
        self.logs: list[tuple[Array, Array]] = []
        self.start = start

    def _split(self) -> tuple[Array, Array]:
        """Rows to learn from, those of weight zero left out, and rows set aside of each class."""
        n, part = len(self.codes), self.halting.part
        taken = np.zeros(n, bool)
        for code in np.unique(self.codes) if part is not None else ():
            own = self.rng.permutation(np.flatnonzero(self.codes == code))
            taken[own[: round(float(part or 0.0) * len(own))]] = True
        if part is not None and (taken.all() or not np.any(self.weight[taken] > 0)):
            raise InputError(
                f"validation_fraction={part} of {n} samples sets {int(taken.sum())} aside",
                "samples of positive weight to learn from and to judge on",
                "Change validation_fraction, pass more samples, or early_stopping=False",
            )
        return np.flatnonzero(~taken & (self.weight > 0)), np.flatnonzero(taken)

    def step(self) -> None:
        """One pass, and what follows from it."""
        order = self.rng.permutation(self.order) if self.halting.shuffle else self.order
        done: Pass = self.online.run(self.weights, order, self.active)
        self.weights = done.weights
        self.wrong = np.where(self.active > 0, np.asarray(done.mistakes), self.wrong)
        self.mistakes += np.asarray(done.mistakes) * (self.active > 0)
        self.epochs += 1
        if self.online.log:
            self._note(order, np.asarray(done.wrong)[: len(order)])
        if not np.isfinite(np.asarray(self.weights.coef)).all():
            raise NotFiniteError(
                f"the coefficients left the finite numbers in pass {self.epochs}: "
                "scale the columns (sklearn.preprocessing.StandardScaler)"
            )
        objective = np.asarray(done.loss) / max(len(self.order), 1)
        if self.halting.told:
            print(f"pass {self.epochs}: {int(self.wrong.sum())} mistakes, loss {objective.sum():g}")
        self._halt(objective)

    def _note(self, order: Array, wrong: Array) -> None:
        self.logs.append((order, wrong))
        if self.mistakes.sum() * self.X.shape[1] > MOST:
            raise InputError(
                f"variant='voted' made {self.mistakes.sum()} mistakes in {self.X.shape[1]} columns",
                "few mistakes: every one adds a voter with a coefficient for each column",
                "Pass variant='averaged', which predicts nearly the same",
            )

    def _halt(self, objective: Array) -> None:
        """Let problems rest, and find the reason when none is active."""
        worse = -self._score() if len(self.aside) else objective
        if self.halting.tol is not None:
            stalled = worse > self.best - self.halting.tol
            self.stale = np.where(stalled, self.stale + 1, 0)
        self.best = np.minimum(self.best, worse)
        self._watch_for_cycles()
        solved = (self.wrong == 0) & (not self.rule.penalised)
        halted = solved | (self.stale >= self.halting.patience)
        self.active = np.where(halted, 0.0, self.active)
        if not self.active.any():
            self.status = self._reason(solved)
        elif self.epochs >= self.limit:
            cycling = self.halting.tol is None and any(self.cycle)
            self.status = Status.CYCLE if cycling else Status.ITERATIONS
            if self.halting.tol is None and not cycling:
                self.status = Status.ITERATIONS

    def _reason(self, solved: Array) -> Status:
        if solved.all():
            return Status.NO_MISTAKES
        return Status.VALIDATION_STALL if len(self.aside) else Status.TRAINING_STALL

    def _score(self) -> Array:
        """Weighted share of the samples set aside that each problem gets right (K,)."""
        W, b = np.asarray(self.weights.coef), np.asarray(self.weights.intercept)
        signs = self.rule.signs[self.codes[self.aside]]
        scores = np.asarray(self.X[self.aside] @ W.T) + b
        right = (np.where(scores > 0, 1.0, -1.0) == signs) & (signs != 0)
        counted = self.weight[self.aside][:, None] * (signs != 0)
        total = counted.sum(axis=0)
        return (right * counted).sum(axis=0) / np.where(total > 0, total, 1.0)

    def _watch_for_cycles(self) -> None:
        """Note states; when every active problem has come back, skip whole rounds of the cycle."""
        if self.halting.shuffle or self.rule.penalised:
            return
        W, b = np.asarray(self.weights.coef), np.asarray(self.weights.intercept)
        for j in np.flatnonzero((self.active > 0) & (self.wrong > 0)):
            if self.cycle[j] is not None:
                continue
            state = hashlib.blake2b(W[j].tobytes() + b[j].tobytes(), digest_size=16).digest()
            if (first := self.seen[j].setdefault(state, self.epochs)) != self.epochs:
                self.cycle[j] = (first, self.epochs - first)
        self._wind()

    def _wind(self) -> None:
        """All that still run are cycling and nothing will stop them: only the phase matters."""
        still = [self.cycle[j] for j in np.flatnonzero((self.active > 0) & (self.wrong > 0))]
        lengths = [found[1] for found in still if found is not None]
        if self.halting.tol is not None or not still or len(lengths) < len(still):
            return
        if self.halting.variant == "last" and self.limit == self.halting.limit:
            period = int(np.lcm.reduce(lengths))
            self.limit = self.epochs + (self.limit - self.epochs) % period

    def end(self) -> Ended:
        """The coefficients of the variant asked for, and what was counted."""
        w = self.weights
        last = np.asarray(w.coef), np.asarray(w.intercept)
        coef, intercept = self._averaged() if self.halting.variant != "last" else last
        voters = self._voters() if self.online.log else None
        return Ended(
            coef,
            intercept,
            last,
            self.epochs,
            self.mistakes,
            self.wrong,
            tuple(self.cycle),
            self.status,
            voters,
            self.aside,
        )

    def _averaged(self) -> tuple[Array, Array]:
        """The mean of w over all samples seen."""
        w = self.weights
        seen = np.maximum(np.asarray(w.seen), 1.0)
        lag = np.asarray(w.lag_coef) / seen[:, None], np.asarray(w.lag_intercept) / seen
        if self.rule.penalised:
            return lag
        return np.asarray(w.coef) - lag[0], np.asarray(w.intercept) - lag[1]

    def _voters(self) -> Voters:
        orders = np.concatenate([order for order, _ in self.logs])
        wrong = np.concatenate([mask for _, mask in self.logs])
        seen = np.asarray(self.weights.seen).astype(int)
        found = [self._voters_of(j, orders, wrong[:, j], seen[j]) for j in range(len(seen))]
        return Voters(tuple(W for W, _ in found), tuple(votes for _, votes in found))

    def _voters_of(self, j: int, order: Array, wrong: Array, seen: int) -> tuple[Array, Array]:
        """(M + 1, d + 1) running sums of the samples that were wrong, and the samples between."""
        at = np.flatnonzero(wrong)
        rows, codes = order[at], self.codes[order[at]]
        step = self.rule.signs[codes, j] * self.rule.steps[codes, j] * self.weight[rows]
        X = self.X[rows]
        X = X.toarray() if sp.issparse(X) else X
        moves = np.hstack([X * step[:, None], (step * self.rule.intercept)[:, None]])
        first = np.append(self.start[0][j], self.start[1][j])
        W = np.vstack([first, first + np.cumsum(moves, axis=0)])
        return W, np.diff(np.concatenate([[0], at + 1, [seen + 1]])).astype(float)


def _made_dense(X: Any) -> Array:
    if X.shape[0] * X.shape[1] > DENSE:
        raise InputError(
            f"a sparse table of {X.shape[0]} × {X.shape[1]} with a penalty",
            "no penalty, which would touch every coefficient at every sample",
            "Pass penalty=None, or a wl.LinearSVC, which penalises sparse tables cheaply",
        )
    return X.toarray()
