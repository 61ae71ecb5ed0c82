"""Tables as they are: numbers with holes, categories as text, from pandas and polars alike."""

from dataclasses import replace

import numpy as np
import pytest

import wonderland as wl
from wonderland.neural import classifier, committee, regressor
from wonderland.neural.columns import fit_encoder
from wonderland.shell.frames import read_columns

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The same committees, smaller and shorter."""
    for room, name in ((classifier, "CLASSES_SETTING"), (regressor, "NUMBERS_SETTING")):
        small = replace(getattr(room, name), width=32, members=3, updates=300)
        monkeypatch.setattr(room, name, small)


@pytest.fixture
def frame(rng):
    n = 240
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "holes": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "kind": pd.Categorical(rng.choice(list("abc"), n)),
            "text": rng.choice(["u", "v"], n).astype(object),
        }
    )


def test_labels_from_a_frame(frame, tmp_path):
    y = np.where((frame.x > 0) ^ (frame.kind == "a"), "yes", "no")
    fitted = wl.MLPClassifier(architecture="table", random_state=0).fit(frame, y)
    assert fitted.score(frame, y) > 0.85
    p = fitted.predict_proba(frame)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.predict(frame), fitted.classes_[p.argmax(axis=1)])
    wl.save(fitted, tmp_path / "table.wl")
    np.testing.assert_array_equal(wl.load(tmp_path / "table.wl").predict_proba(frame), p)
    other = frame.assign(kind=frame.kind.astype(str).replace("c", "never seen"))
    assert np.isfinite(fitted.predict_proba(other)).all()
    assert {"generalisation_gap", "calibration_error", "held_out_loss"} <= set(fitted.evidence_)


def test_polars_is_pandas(frame):
    pl = pytest.importorskip("polars")
    wl_net = wl.MLPClassifier(architecture="table")
    ours = read_columns(wl_net, frame, reset=True)
    table = pl.from_pandas(frame)
    theirs = read_columns(wl.MLPClassifier(architecture="table"), table, reset=True)
    encoder = fit_encoder(ours)
    np.testing.assert_array_equal(encoder.encode(ours), encoder.encode(theirs))


def test_numbers_with_their_spread(frame, rng):
    y = 50 + 20 * (2 * frame.x + (frame.kind == "a")) + 2 * rng.normal(size=len(frame))
    fitted = wl.MLPRegressor("gaussian", architecture="table", random_state=0).fit(frame, y)
    mean, std = fitted.predict(frame, return_std=True)
    assert fitted.score(frame, y) > 0.8
    assert (std > 0).all()
    low, high = fitted.prediction_interval(frame, 0.9)
    assert ((low < y) & (y < high)).mean() > 0.75
    assert (mean == fitted.predict(frame)).all()


def test_the_same_seed_is_the_same_committee(frame):
    y = (frame.x > 0).astype(int)
    one, two = (
        wl.MLPClassifier(architecture="table", random_state=3).fit(frame, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.predict_proba(frame), two.predict_proba(frame))


def test_every_sample_is_judged_once_by_a_stranger(frame, rng):
    columns = read_columns(wl.MLPClassifier(architecture="table"), frame, reset=True)
    encoder = fit_encoder(columns)
    data = committee.Data(encoder.encode(columns), rng.integers(0, 2, 240).astype(np.int32), None)
    found = committee.elect(data, classifier.BITS, 1, encoder, classifier.CLASSES_SETTING, 0)
    assert sorted(found.judged) == list(range(240))


def test_what_is_refused(frame):
    y = (frame.x > 0).astype(int)
    table = wl.MLPClassifier(architecture="table", random_state=0)
    with pytest.raises(wl.InputError, match="infinity"):
        table.fit(frame.assign(x=np.inf), y)
    with pytest.raises(wl.InputError, match="architecture='table'"):
        table.partial_fit(frame, y, classes=[0, 1])
    fitted = table.fit(frame, y)
    with pytest.raises(wl.InputError, match="holds text"):
        fitted.predict(frame.assign(x="one"))
    with pytest.raises(wl.InputError, match="feature names"):
        fitted.predict(frame.drop(columns="x"))
