"""When to recompute which stages: dynamic programming over a chain, for every budget at once.

Let C(s, t, m) be the least forward effort to run stages s … t forward and then backward, with
the input of s, the boundary after t and its cotangent at hand and m bytes besides. Then

    C(s, t, m) = min of
      keep   o:   e(s) + redone(s, o) + C(s+1, t, m − kept(s, o) − boundary(s+1))
      redo s…u:   e(s) + … + e(u) + C(u+1, t, m − boundary(u+1)) + C(s, u, m − boundary − cotangent)

where `keep` holds what option o of stage s keeps, and `redo` keeps nothing of s … u and runs
them again, by an optimal schedule of their own; it may drop the boundary too, and make it again.
It extends Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova (Optimal checkpointing for
heterogeneous chains, INRIA RR-9302, 2019) by a choice of what to keep inside each stage, and
contains Griewank and Walther's revolve (ACM TOMS 26, 2000).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wonderland.autodiff.checkpoint.chain import Chain
from wonderland.autodiff.checkpoint.options import Option
from wonderland.autodiff.costs import cost_of, effort
from wonderland.autodiff.liveness import peak

__all__ = ["Items", "Keep", "Redo", "Schedules"]

SLOTS = 256  # budgets told apart


class Keep(NamedTuple):
    """Run the stage once and keep what its option says."""

    stage: int
    option: int


class Redo(NamedTuple):
    """Run stages `start` … `stop` − 1, keep their input only, and later run `items`.

    With `border` their outputs stay too, so that the last of them need not be made again.
    """

    start: int
    stop: int
    items: tuple["Keep | Redo", ...]
    border: bool


Items = tuple[Keep | Redo, ...]
Table = dict[tuple[int, int, bool], np.ndarray]


class Schedules:
    """The best schedule for each of `SLOTS` budgets, from nothing to the plain program's memory."""

    def __init__(self, chain: Chain, options: Sequence[Sequence[Option]]) -> None:
        self._options = options
        self._measure(chain)
        self.work = np.array([effort(cost_of(stage.jaxpr)) for stage in chain.stages])
        self._done = np.concatenate([[0.0], self.work.cumsum()])
        self.scale = max(self._plain(chain, options), 1) / (SLOTS - 1)
        self._table = self._solve(len(chain.stages))

    def _measure(self, chain: Chain) -> None:
        n = len(chain.stages)
        live = [chain.live(stop) for stop in range(n + 1)]
        self._boundary = [chain.weight(live[s]) for s in range(n + 1)]
        self._crossing = [
            [chain.weight(live[t] - live[s]) for t in range(n + 1)] for s in range(n + 1)
        ]
        self._cotangent = [chain.cotangent(stop) for stop in range(n + 1)]
        self._ahead = [peak(stage.jaxpr, results=False) for stage in chain.stages]

    def _plain(self, chain: Chain, options: Sequence[Sequence[Option]]) -> int:
        """Memory of keeping the most in every stage."""
        held, most = 0, 0
        for s, choices in enumerate(options):
            full = choices[0]
            most = max(most, held + self._need(s, full))
            held += full.kept + self._crossing[s][s + 1]
        return most

    def _need(self, s: int, option: Option) -> int:
        """Bytes in use while stage s runs backward, beside what earlier stages hold."""
        back = option.kept + option.peak + self._cotangent[s] + self._cotangent[s + 1]
        return max(back + self._boundary[s + 1], self._ahead[s] + self._boundary[s + 1])

    def _slots(self, amount: int) -> int:
        return round(amount / self.scale)

    def _solve(self, n: int) -> Table:
        table: Table = {}
        for length in range(n):
            for s in range(n - length):
                for made in (False, True):
                    table[s, s + length, made] = self._best(s, s + length, table, made=made)
        return table

    def _best(self, s: int, t: int, table: Table, *, made: bool) -> np.ndarray:
        if s == t:
            found = [self._alone(s, option, made=made) for option in self._options[s]]
            return np.min(found, axis=0)
        least = np.full(SLOTS, np.inf)
        for option in self._options[s]:
            np.minimum(least, self._keep(s, option, table[s + 1, t, made]), out=least)
        for u in range(s, t):
            for border in (True, False):
                rest, inner = table[u + 1, t, made], table[s, u, not border]
                np.minimum(least, self._redo(s, u, rest, inner, border=border), out=least)
        return least

    def _alone(self, s: int, option: Option, *, made: bool) -> np.ndarray:
        """One stage forward and at once backward, with nothing to hold in between.

        With its outputs at hand it runs forward only as far as its reverse pass reads back; if
        they are to be made, the whole of it runs, but nothing of it twice.
        """
        work = self.work[s] if made or option.kept else 0.0
        again = 0.0 if made and option.again else option.redone
        need = option.kept + option.peak + self._cotangent[s] + made * self._boundary[s + 1]
        return np.where(np.arange(SLOTS) >= self._slots(need), work + again, np.inf)

    def _keep(self, s: int, option: Option, rest: np.ndarray) -> np.ndarray:
        rest = _less(rest, self._slots(option.kept + self._crossing[s][s + 1]))
        enough = np.arange(SLOTS) >= self._slots(self._need(s, option))
        return np.where(enough, rest + (self.work[s] + option.redone), np.inf)

    def _redo(
        self, s: int, u: int, rest: np.ndarray, inner: np.ndarray, *, border: bool
    ) -> np.ndarray:
        after, within = self._taken(s, u, border=border)
        return _less(rest, after) + _less(inner, within) + self._done[u + 1] - self._done[s]

    def _taken(self, s: int, u: int, *, border: bool) -> tuple[int, int]:
        """Slots that a repetition of s … u takes from what follows, and from itself."""
        after = self._crossing[s][u + 1]
        held = self._cotangent[u + 1] + (after if border else 0)
        return self._slots(after), self._slots(held)

    def effort(self, slot: int) -> float:
        """Forward effort of the best schedule within a budget; infinite where there is none."""
        return float(self._table[0, len(self.work) - 1, True][slot])

    def smallest(self) -> int:
        """The least budget, in slots, for which the model knows a schedule."""
        possible = np.isfinite(self._table[0, len(self.work) - 1, True])
        return int(possible.argmax()) if possible.any() else SLOTS - 1

    def items(self, slot: int) -> Items:
        """The schedule that attains `effort(slot)`."""
        return self._trace(0, len(self.work) - 1, slot)

    def _trace(self, s: int, t: int, m: int, *, made: bool = True) -> Items:
        if s == t:
            costs = [self._alone(s, option, made=made)[m] for option in self._options[s]]
            return (Keep(s, int(np.argmin(costs))),)
        table = self._table
        target = table[s, t, made][m]
        for index, option in enumerate(self._options[s]):
            if self._keep(s, option, table[s + 1, t, made])[m] <= target:
                used = self._slots(option.kept + self._crossing[s][s + 1])
                return (Keep(s, index), *self._trace(s + 1, t, m - used, made=made))
        for u in range(s, t):
            for border in (True, False):
                rest, inner = table[u + 1, t, made], table[s, u, not border]
                if self._redo(s, u, rest, inner, border=border)[m] <= target:
                    after, held = self._taken(s, u, border=border)
                    again = Redo(s, u + 1, self._trace(s, u, m - held, made=not border), border)
                    return (again, *self._trace(u + 1, t, m - after, made=made))
        raise AssertionError("the table holds no schedule it was not built from")


def _less(costs: np.ndarray, slots: int) -> np.ndarray:
    """The same costs when `slots` of the budget are taken."""
    if slots <= 0:
        return costs
    shifted = np.full(SLOTS, np.inf)
    shifted[slots:] = costs[: SLOTS - slots]
    return shifted
