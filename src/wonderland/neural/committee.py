"""`architecture="table"`: a committee of residual networks over encoded columns, no number to tune.

    members      K networks `nn.TabularNet`, each on all folds of the samples but its own
    training     AdamW, cosine learning rate, dropout; the weights with the least held-out loss
    answer       mean of the members' probabilities; for numbers the mixture of their distributions
    spread       variances times c, so that held-out residuals have E[r²/(cσ²)] = 1

Every sample (of large tables, a part of them) is held out once: no member is judged on what it
learnt from, and no test data are needed. All members train in one program. The number of epochs is
that of about 5000 updates, between 20 and 400 epochs.

References: Gorishniy et al. (2021, 2022); Lakshminarayanan, Pritzel & Blundell (2017).
"""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from wonderland import nn
from wonderland.core.status import Status
from wonderland.neural.columns import Encoder
from wonderland.neural.forward import raw_outputs
from wonderland.neural.heads import Head
from wonderland.neural.network import Data
from wonderland.training import History, Recipe, Stopping
from wonderland.training.many import fit_many

__all__ = [
    "CLASSES_SETTING",
    "NUMBERS_SETTING",
    "Committee",
    "Elected",
    "Setting",
    "elect",
    "spread_factor",
]

MANY = 20_000  # samples from which three members, and a tenth of the samples aside, are enough
PARTS = 10


@dataclass(frozen=True)
class Setting:
    """What the table architecture is made of; nothing here depends on the data but their number.

    Attributes:
        width: Of the residual stream.
        blocks: How many.
        members: K; three on more than `MANY` samples.
        dropout: Inside of the blocks.
        learning_rate: η_0 of AdamW.
        weight_decay: λ.
        embedding: Of the numbers: "periodic", "piecewise" (linear) or None.
        embedded: Most columns of numbers that get embeddings.
        updates: Of the longest training.
        patience: Share of the epochs without a better held-out loss after which a member ends.
    """

    width: int = 192
    blocks: int = 2
    members: int = 5
    dropout: float = 0.3
    learning_rate: float = 1e-3
    weight_decay: float = 0.02
    embedding: str | None = "periodic"
    embedded: int = 64
    updates: int = 5000
    patience: float = 0.25

    def suited(self, samples: int, numbers: int) -> "Setting":
        """Wider, with more dropout, for many samples of too many numbers to embed (pixels)."""
        if samples <= MANY or numbers <= self.embedded:
            return self
        return replace(self, width=512, dropout=max(0.5, self.dropout))

    def batch_size(self, samples: int) -> int:
        """A power of two: about 32 minibatches an epoch, of 16 to 512 samples."""
        return int(2 ** np.clip(np.round(np.log2(max(samples, 1) / 32)), 4, 9))

    def epochs(self, samples: int) -> int:
        """As many as make `updates`."""
        each = max(1, samples // self.batch_size(samples))
        return int(np.clip(round(self.updates / each), 20, 400))


# Labels reward strong regularisation, smooth numbers a long fit with pieces as fine as the data.
CLASSES_SETTING = Setting()
NUMBERS_SETTING = Setting(embedding="piecewise", dropout=0.1, learning_rate=2e-3, patience=0.35)


class Committee(eqx.Module):
    """Members with their arrays stacked: all their raw outputs for one encoded sample.

    Attributes:
        members: A `TabularNet` whose arrays have a first axis K.
    """

    members: Any

    def __call__(self, x: Any) -> Any:
        """(K, c) for x."""
        arrays, rest = eqx.partition(self.members, eqx.is_array)
        return jax.vmap(lambda own: eqx.combine(own, rest)(x))(arrays)


@dataclass(frozen=True)
class Elected:
    """A trained committee.

    Attributes:
        model: The `Committee`.
        status: How training ended.
        history: Records (epochs, K).
        judged: Samples that one member had not seen (m,): all of them, where folds are as many as
            members, and
        held: their raw outputs by that member (m, c).
        recipe: How each member was trained.
    """

    model: Committee
    status: Status
    history: History
    judged: np.ndarray
    held: np.ndarray
    recipe: Recipe


def elect(
    data: Data, head: Head, outputs: int, encoder: Encoder, setting: Setting, seed: int
) -> Elected:
    """Train the members, each on all folds but its own."""
    n = len(data)
    setting = setting.suited(n, len(encoder.numeric))
    count = max(2, min(setting.members if n <= MANY else 3, n // 2))
    parts = count if n <= MANY else PARTS
    stratify = data.y if head.name in ("bits", "classes") else None
    folds = _folds(n, parts, stratify, seed)
    inside = [np.flatnonzero(folds != k) for k in range(count)]
    aside = [np.flatnonzero(folds == k) for k in range(count)]
    models = [_member(data.X, outputs, encoder, setting, [seed, k]) for k in range(count)]
    recipe = _recipe(setting, n - len(aside[0]))
    found = fit_many(
        models,
        head.loss,
        data.parts,
        recipe=recipe,
        rows=_padded(inside),
        counts=[len(rows) for rows in inside],
        held_out=_padded(aside),
        held_counts=[len(rows) for rows in aside],
        keys=[(seed + k) % 2**31 for k in range(count)],
    )
    committee = Committee(found.model)
    judged = np.concatenate(aside)
    held = _held(committee, data.X, aside)
    worst = max(int(status) for status in np.asarray(found.status))
    return Elected(committee, Status(worst), found.evidence["history"], judged, held, recipe)


def _recipe(setting: Setting, samples: int) -> Recipe:
    return Recipe(
        epochs=setting.epochs(samples),
        batch_size=min(setting.batch_size(samples), samples),
        optimizer="adamw",
        options={"b2": 0.95},
        learning_rate=setting.learning_rate,
        weight_decay=setting.weight_decay,
        schedule="warmup_cosine",
        clip=1.0,
        stopping=Stopping(patience=max(8, round(setting.patience * setting.epochs(samples)))),
        restore=True,
        progress=False,
    )


def _member(
    X: np.ndarray, outputs: int, encoder: Encoder, setting: Setting, seed: list[int]
) -> Any:
    numbers = encoder.numbers
    kind = setting.embedding if len(encoder.numeric) <= setting.embedded else None
    draws = np.random.Generator(np.random.Philox(seed))
    net = nn.TabularNet(
        numbers,
        encoder.categories,
        outputs,
        width=setting.width,
        blocks=setting.blocks,
        dropout=setting.dropout,
        embedding=_embedding(kind, X[:, :numbers], draws),
        key=draws,
    )
    # A first answer of zero for all: nothing has to be unlearnt.
    return eqx.tree_at(lambda m: m.body.layers[-1].weight, net, replace_fn=lambda w: 0.1 * w)


def _embedding(kind: str | None, X: np.ndarray, draws: np.random.Generator) -> Any:
    d = X.shape[1]
    if kind is None or d == 0:
        return None
    if kind == "periodic":
        return nn.NumericalEmbedding(nn.Periodic(d, 16, key=draws), d, 8, key=draws)
    edges = np.quantile(X, np.linspace(0, 1, 17), axis=0).T
    return nn.NumericalEmbedding(nn.PiecewiseLinear(edges), d, 8, key=draws)


def _folds(n: int, count: int, stratify: np.ndarray | None, seed: int) -> np.ndarray:
    """The fold of each sample: as equal as can be, in each class too."""
    draws = np.random.default_rng(seed)
    order = draws.permutation(n)
    if stratify is not None:
        order = order[np.argsort(stratify[order], kind="stable")]
    folds = np.empty(n, int)
    folds[order] = np.arange(n) % count
    return folds


def _padded(rows: list[np.ndarray]) -> np.ndarray:
    longest = max(len(row) for row in rows)
    return np.stack([np.pad(row, (0, longest - len(row)), mode="edge") for row in rows])


def _held(committee: Committee, X: np.ndarray, aside: list[np.ndarray]) -> np.ndarray:
    """Raw outputs of the samples of each fold by the member that had not seen it."""
    arrays, rest = eqx.partition(committee.members, eqx.is_array)
    found = []
    for k, rows in enumerate(aside):
        member = eqx.combine(jax.tree.map(lambda leaf, k=k: leaf[k], arrays), rest)
        found.append(raw_outputs(member, X[rows]))
    return np.concatenate(found)


def spread_factor(mean: Any, variance: Any, y: Any, weight: Any) -> np.ndarray:
    """c (t,) of each output, the weighted mean of r²/σ² over held-out samples."""
    weight = np.ones(len(y)) if weight is None else weight
    share = (weight / weight.sum())[:, None]
    return np.sum(share * (y - mean) ** 2 / variance, axis=0)
