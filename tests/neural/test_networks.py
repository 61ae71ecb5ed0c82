"""Networks: several kinds of output, going on, stopping, storage, evidence, what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import wonderland as wl
from wonderland.core.status import Status

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
pytestmark = quiet


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16.0, y[:500]


def noisy_line(rng, n=1500):
    X = rng.uniform(-1, 1, size=(n, 1))
    spread = 0.1 + 0.4 * (X[:, 0] > 0)
    return X, 2 * X[:, 0] + spread * rng.normal(size=n), spread


def test_a_gaussian_network_learns_mean_and_spread(rng):
    X, y, spread = noisy_line(rng)
    fitted = wl.MLPRegressor(
        "gaussian", (32,), max_iter=150, learning_rate_init=0.01, random_state=0
    ).fit(X, y)
    mean, std = fitted.predict(X, return_std=True)
    assert np.abs(mean - 2 * X[:, 0]).mean() < 0.1
    for half in (X[:, 0] > 0.2, X[:, 0] < -0.2):
        assert std[half].mean() == pytest.approx(spread[half].mean(), rel=0.4)
    low, high = fitted.prediction_interval(X, 0.9)
    assert ((low < y) & (y < high)).mean() == pytest.approx(0.9, abs=0.04)


def test_quantiles_cover_and_never_cross(rng):
    X, y, _ = noisy_line(rng)
    fitted = wl.MLPRegressor(
        "quantile", (32,), max_iter=150, learning_rate_init=0.01, random_state=0
    ).fit(X, y)
    found = fitted.predict_quantiles(X)
    assert (np.diff(found, axis=1) >= 0).all()
    shares = (y[:, None] < found).mean(axis=0)
    np.testing.assert_allclose(shares, [0.05, 0.5, 0.95], atol=0.05)
    np.testing.assert_array_equal(fitted.predict(X), found[:, 1])


def test_several_outputs_of_every_loss(rng):
    X = rng.normal(size=(80, 3))
    Y = np.exp(0.3 * X[:, :2])
    for loss, shape in (("squared_error", None), ("poisson", None), ("gaussian", (80, 2, 3))):
        fitted = wl.MLPRegressor(loss, (8,), max_iter=5, random_state=0).fit(X, Y)
        assert fitted.predict(X).shape == Y.shape
        if shape:
            assert fitted.predict_quantiles(X).shape == shape
    fitted = wl.MLPRegressor("quantile", (8,), max_iter=5).fit(X, Y)
    assert fitted.predict_quantiles(X).shape == (80, 2, 3)


def test_several_labels_of_a_sample(digits):
    X, y = digits
    Y = np.stack([y % 2 == 0, y > 4, y == 3], axis=1).astype(int)
    fitted = wl.MLPClassifier((32,), max_iter=150, random_state=0).fit(X, Y)
    assert fitted.score(X, Y) > 0.8
    assert fitted.predict_proba(X).shape == (500, 3)


def test_dropout_norms_and_recipes(digits):
    X, y = digits
    recipe = wl.training.Recipe(epochs=30, batch_size=50, optimizer="adamw", schedule="cosine")
    for options in (
        {"dropout": 0.2},
        {"norm": "batch", "weight_decay": 1e-2},
        {"norm": "layer", "schedule": "one_cycle", "learning_rate_init": 0.02},
        {"activation": "prelu"},
        {"recipe": recipe},
    ):
        fitted = wl.MLPClassifier((32,), **{"max_iter": 40, "random_state": 0} | options).fit(X, y)
        assert fitted.score(X, y) > 0.8, options
    assert fitted.status_ is Status.EPOCHS


def test_warm_start_goes_on(digits):
    X, y = digits
    fitted = wl.MLPClassifier((16,), max_iter=5, warm_start=True, random_state=0)
    losses = [fitted.fit(X, y).loss_ for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    with pytest.raises(wl.InputError, match="same classes"):
        fitted.fit(X, y % 3)
    with pytest.raises(wl.InputError, match="warm_start from a network"):
        fitted.set_params(hidden_layer_sizes=(16,)).fit(X[:, :5], y)


def test_early_stopping_keeps_the_best(digits):
    X, y = digits
    fitted = wl.MLPClassifier(
        (32,), early_stopping=True, max_iter=300, random_state=0, n_iter_no_change=8
    ).fit(X, y)
    assert fitted.status_ is Status.VALIDATION_STALL
    assert fitted.n_iter_ < 300
    assert max(fitted.validation_scores_) == fitted.best_validation_score_
    assert {"generalisation_gap", "calibration_error", "validation_curve"} <= set(fitted.evidence_)


def test_the_learning_rate_of_adaptive_falls(digits):
    fitted = wl.MLPClassifier(
        (16,), solver="sgd", learning_rate="adaptive", learning_rate_init=0.5, tol=1e-2,
        n_iter_no_change=2, max_iter=200, random_state=0,
    ).fit(*digits)  # fmt: skip
    rates = np.unique(fitted.history_.learning_rate)
    np.testing.assert_allclose(rates[1:] / rates[:-1], 5.0, rtol=1e-4)
    assert fitted.status_ is Status.TRAINING_STALL


def test_class_weights_shift_the_decision(rng):
    X = rng.normal(size=(400, 1))
    y = (X[:, 0] + rng.normal(size=400) > 1.2).astype(int)
    shares = [
        wl.MLPClassifier((8,), class_weight=w, max_iter=60, learning_rate_init=0.01, random_state=0)
        .fit(X, y)
        .predict(X)
        .mean()
        for w in (None, "balanced")
    ]
    assert shares[1] > shares[0]


def test_saved_networks_go_on_where_they_were(digits, tmp_path):
    X, y = digits
    first = wl.MLPClassifier((8,), random_state=0).partial_fit(X, y, classes=np.arange(10))
    wl.save(first, tmp_path / "network.wl")
    again = wl.load(tmp_path / "network.wl")
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
    for model in (first, again):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(again.coefs_[0], first.coefs_[0])


def test_nothing_compiles_for_a_new_number(digits):
    def fit(**options):
        return wl.MLPClassifier((8,), max_iter=3, random_state=0, dropout=0.1, **options).fit(
            *digits
        )

    wl.testing.nothing_compiles_again(
        lambda: fit().coefs_[0],
        lambda: fit(alpha=0.3, learning_rate_init=0.02).coefs_[0],
        lambda: fit(beta_1=0.8, weight_decay=1e-3, tol=0.1).coefs_[0],
    )


def test_evidence_counts_what_is_there(digits):
    fitted = wl.MLPClassifier((8, 7), max_iter=3, random_state=0).fit(*digits)
    count = 65 * 8 + 9 * 7 + 8 * 10
    assert fitted.evidence_["parameters"].value == count
    assert fitted.evidence_["flops"].value == 6 * (64 * 8 + 8 * 7 + 7 * 10)
    dying = wl.MLPClassifier(
        (8,), max_iter=1, solver="sgd", learning_rate_init=1e-9, random_state=0
    )
    dying.fit(-100 * np.abs(digits[0]) - 100, digits[1])
    assert 0 < dying.evidence_["dead_units"].value <= 8


def test_sparse_tables_are_the_dense_ones(digits):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = digits
    one, two = (
        wl.MLPClassifier((8,), max_iter=3, random_state=0).fit(table, y)
        for table in (X, sparse.csr_array(X))
    )
    np.testing.assert_array_equal(one.coefs_[0], two.coefs_[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "adm"}, "Did you mean 'adam'"),
        ({"learning_rate": "adaptiv"}, "Did you mean 'adaptive'"),
        ({"activation": "rel"}, "Did you mean 'relu'"),
        ({"batch_size": 501}, "batch of at most 500"),
        ({"hidden_layer_sizes": (3, 0)}, "must be > 0"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"norm": "bath"}, "Did you mean 'batch'"),
        ({"solver": "lbfgs", "dropout": 0.5}, "lbfgs"),
        (
            {"solver": "sgd", "learning_rate_init": 1e6, "activation": "identity"},
            "is the largest of those tried",
        ),
    ],
)
def test_bad_parameters_are_told_in_three_parts(digits, options, words):
    with pytest.raises(wl.InputError, match=words) as caught:
        wl.MLPClassifier(**options).fit(*digits)
    assert caught.value.todo


def test_bad_data_are_told(digits):
    X, y = digits
    network = wl.MLPClassifier((4,), max_iter=1)
    with pytest.raises(wl.InputError, match="not among classes"):
        network.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(wl.InputError, match="NaN"):
        network.fit(np.where(X == 1, np.nan, X), y)
    with pytest.raises(wl.InputError, match="negative"):
        wl.MLPRegressor("poisson").fit(X, -1.0 - y)
    with pytest.raises(AttributeError, match="stochastic"):
        wl.MLPClassifier(solver="lbfgs").partial_fit(X, y, classes=np.arange(10))
