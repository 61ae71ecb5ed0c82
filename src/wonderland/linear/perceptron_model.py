"""What a perceptron leaves behind: a linear function, a committee of them, or votes of pairs."""

from typing import Any

import equinox as eqx

from wonderland.bases.basis import namespace

__all__ = ["Committee", "PairVotes"]


class Committee(eqx.Module):
    """f(x) = Σ_m c_m sgn(w_m·x + b_m), Σ c_m = 1: every w on the way votes with its lifetime.

    Attributes:
        voters: For each problem the rows (w_m, b_m), (M, d + 1).
        votes: For each problem c (M,).
        single: Whether there is one problem, so that f(x) is a number.

    Reference: Freund & Schapire, Large Margin Classification Using the Perceptron (1999).
    """

    voters: tuple[Any, ...]
    votes: tuple[Any, ...]
    single: bool = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        """f(x) for one sample x (d,): a number, or (K,)."""
        return self.predict(x[None, :])[0]

    def predict(self, X: Any) -> Any:
        """f for every row of X (n, d) → (n,) or (n, K)."""
        columns = []
        for W, c in zip(self.voters, self.votes, strict=True):
            xp = namespace(W)
            scores = X @ W[:, :-1].T + W[None, :, -1]
            columns.append(xp.where(scores > 0, 1.0, -1.0) @ c)
        return columns[0] if self.single else namespace(columns[0]).stack(columns, axis=1)


class PairVotes(eqx.Module):
    """Votes of the pairs of classes: Σ over the other classes of sgn of the pair's score.

    A tie goes to the class whose scores add up to more; that sum counts less than half a vote.

    Attributes:
        pairs: The scores of the K pairs, a `LinearModel` or a `Committee`.
        signs: (k, K): +1 or −1 where class c is the positive or negative one of a pair, else 0.
    """

    pairs: Any
    signs: Any

    def __call__(self, x: Any) -> Any:
        """Votes for each class (k,) at one sample x (d,)."""
        return self._counted(self.pairs(x)[None, :])[0]

    def predict(self, X: Any) -> Any:
        """Votes for each class at every row of X (n, d) → (n, k)."""
        return self._counted(self.pairs.predict(X))

    def _counted(self, raw: Any) -> Any:
        xp = namespace(raw)
        votes = xp.where(raw > 0, 1.0, -1.0) @ self.signs.T
        sums = raw @ self.signs.T
        return votes + sums / (3.0 * (xp.abs(sums) + 1.0))
