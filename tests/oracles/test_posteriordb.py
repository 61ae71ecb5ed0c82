"""Posterior means against posteriordb: ten Gaussian regressions, 10,000 reference draws each.

The models are written from the formulas beside the reference summaries. They differ in columns and
priors only, so that one compiled program (nine columns, unused ones held by a prior) serves all.
"""

import json
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.trust.diagnostics import mean_error
from wonderland.trust.sampling import Effort, sample

pytest.importorskip("blackjax")

WIDTH = 9
NAMES = (
    "sblrc-blr",
    "sblri-blr",
    "kidiq-kidscore_momhs",
    "kidiq-kidscore_momiq",
    "kidiq-kidscore_momhsiq",
    "kidiq-kidscore_interaction",
    "mesquite-logmesquite",
    "mesquite-logmesquite_logvas",
    "nes1980-nes",
    "earnings-logearn_interaction_z",
)


def design(name, data):
    """Columns and target of a model."""
    get = {key: np.asarray(value, float) for key, value in data.items()}
    family, _, model = name.partition("-")
    if family.startswith("sblr"):
        return get["X"], get["y"]
    if family == "kidiq":
        hs, iq = get["mom_hs"], get["mom_iq"]
        chosen = {
            "kidscore_momhs": [hs],
            "kidscore_momiq": [iq],
            "kidscore_momhsiq": [hs, iq],
            "kidscore_interaction": [hs, iq, hs * iq],
        }[model]
        return _with_one(chosen), get["kid_score"]
    if family == "mesquite":
        one, two, canopy, total, density = (
            np.log(get[key])
            for key in ("diam1", "diam2", "canopy_height", "total_height", "density")
        )
        sizes = [one, two, canopy]
        if model.endswith("logvas"):
            sizes = [one + two + canopy, one + two, one - two]
        return _with_one([*sizes, total, density, get["group"]]), np.log(get["weight"])
    if family == "nes1980":
        ages = [(get["age_discrete"] == age).astype(float) for age in (2, 3, 4)]
        rest = [get[key] for key in ("educ1", "gender", "income")]
        return _with_one([get["real_ideo"], get["race_adj"], *ages, *rest]), get["partyid7"]
    z, male = (get["height"] - get["height"].mean()) / get["height"].std(ddof=1), get["male"]
    return _with_one([z, male, z * male]), np.log(get["earn"])


def _with_one(columns):
    return np.column_stack([np.ones(len(columns[0])), *columns])


def log_density(theta, facts):
    """log p(β, log σ | y) with β = β̂ + Tz, in which the likelihood is round."""
    z, log_sigma = theta["z"], theta["log_sigma"]
    sigma = jnp.exp(log_sigma)
    beta = facts["best"] + facts["turn"] @ z
    squares = facts["rss"] + facts["unit"] ** 2 * (facts["used"] * z**2).sum()
    likelihood = -facts["n"] * log_sigma - 0.5 * squares / sigma**2
    held = 0.5 * (facts["precision"] * beta**2).sum() + 0.5 * ((1 - facts["used"]) * z**2).sum()
    half_normal = -0.5 * (sigma / 10.0) ** 2
    half_cauchy = -jnp.log1p((sigma / 2.5) ** 2)
    prior = facts["normal"] * half_normal + facts["cauchy"] * half_cauchy
    return likelihood - held + prior + log_sigma


def facts_of(formula, X, y):
    """All that the density needs to know, in one shape for every model."""
    p = X.shape[1]
    best, *_ = np.linalg.lstsq(X, y)
    rss = float(((y - X @ best) ** 2).sum())
    unit = np.sqrt(rss / len(y))
    turn, used, padded = np.zeros((WIDTH, WIDTH)), np.arange(WIDTH) < p, np.zeros(WIDTH)
    turn[:p, :p] = unit * np.linalg.inv(np.linalg.qr(X, mode="r"))
    padded[:p] = best
    return {
        "best": padded,
        "turn": turn,
        "used": used.astype(float),
        "unit": unit,
        "rss": rss,
        "n": float(len(y)),
        "precision": 0.01 * used if "beta_j ~ N(0,10^2)" in formula else np.zeros(WIDTH),
        "normal": float("half-N(0,10)" in formula),
        "cauchy": float("half-Cauchy(0,2.5)" in formula),
    }


@cache
def references(folder):
    return json.loads((folder / "reference_posteriors.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_means_agree_within_monte_carlo_error(name, shared_data):
    folder = shared_data / "posteriordb"
    reference = references(folder)[name]
    X, y = design(name, json.loads((folder / reference["data_file"]).read_text()))
    facts, p = facts_of(reference["model"], X, y), X.shape[1]
    start = {"z": np.zeros(WIDTH), "log_sigma": np.log(facts["unit"])}
    effort = Effort(draws=1000, warmup=300)
    found = sample(log_density, start, 7, data=(facts,), effort=effort)
    assert not found.evidence.failing
    draws = facts["best"] + found.draws["z"] @ facts["turn"].T
    draws = np.concatenate([draws[..., :p], np.exp(found.draws["log_sigma"])[..., None]], axis=-1)
    theirs = list(reference["summary"].values())
    error = np.hypot(mean_error(draws), [one["mcse_mean"] for one in theirs])
    away = np.abs(draws.mean(axis=(0, 1)) - [one["mean"] for one in theirs]) / error
    assert away.max() < 4.5, away
    np.testing.assert_allclose(draws.std(axis=(0, 1)), [one["sd"] for one in theirs], rtol=0.12)
