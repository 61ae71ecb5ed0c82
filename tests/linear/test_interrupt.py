"""Interrupting a fit leaves the estimator usable or cleanly unfitted, never in between."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import wonderland as wl
from wonderland.solve import direct, run


def slow_problem(rng):
    """Curvatures from 1 to 1e-12: descent needs hours."""
    X = rng.normal(size=(200, 30)) * np.geomspace(1.0, 1e-6, 30)
    return X, X @ np.geomspace(1.0, 1e6, 30) + rng.normal(size=200)


def interrupt_after(seconds):
    """Ctrl-C from outside, while the main thread computes."""

    def send():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


ENDLESS = {"solver": "descent", "momentum": False, "tol": 1e-300, "max_iter": 10**12}


@pytest.fixture
def heard():
    """Ctrl-C raises here even where the shell that started the tests in the background muted it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_a_real_interrupt_of_descent_keeps_the_best_so_far(rng):
    X, y = slow_problem(rng)
    model = wl.LinearRegression(**ENDLESS)
    interrupt_after(3.0)
    with pytest.raises(KeyboardInterrupt, match="best iterate"):
        model.fit(X, y)
    assert model.status_ is wl.Status.INTERRUPTED
    assert model.predict(X).shape == y.shape
    assert model.score(X, y) > 0
    assert model.evidence_["iterations"].value > 0
    assert model.evidence_["gradient_norm"].holds is False


@pytest.mark.parametrize("fitted_before", [False, True])
def test_an_interrupt_of_a_direct_solver_changes_nothing(fitted_before, rng, monkeypatch):
    X, y = slow_problem(rng)
    model = wl.LinearRegression()
    if fitted_before:
        model.fit(X[:, :3], y)
    before = dict(vars(model))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(direct, "factorise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before


def test_an_interrupt_between_bursts(rng, monkeypatch):
    """The burst that was running is lost, all before it is kept."""
    X, y = slow_problem(rng)
    real, calls = run._burst, []

    def burst(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(run, "_burst", burst)
    model = wl.Ridge(1e-9, **ENDLESS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_[0] > 0
    assert np.isfinite(model.coef_).all()


def test_limits_end_the_fit_with_a_warning_and_a_usable_model(rng):
    X, y = slow_problem(rng)
    for limit, status in (({"max_iter": 50}, "ITERATIONS"), ({"time_limit": 0.2}, "TIME")):
        model = wl.LinearRegression(**{**ENDLESS, **limit})
        with pytest.warns(ConvergenceWarning, match=wl.Status[status].sentence[:20]):
            model.fit(X, y)
        assert model.status_ is wl.Status[status]
        assert model.score(X, y) > 0


def test_the_step_rule_stops(rng):
    X, y = slow_problem(rng)
    X = X / X.std(axis=0)
    model = wl.LinearRegression(**{**ENDLESS, "step_tol": 1e-10}).fit(X, y)
    assert model.status_ is wl.Status.STALLED
    assert model.n_iter_ > 1
