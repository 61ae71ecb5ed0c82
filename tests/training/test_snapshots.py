"""A killed run resumes bit for bit; whatever hinders a snapshot is told and loses nothing."""

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import wonderland as wl
from tests.training.helpers import flat, network, task
from wonderland.training import Recipe, train

RECIPE = Recipe(epochs=4, batch_size=48, schedule="cosine", average="ema", snapshot_minutes=0.0)
RUN = """
import sys
import numpy as np
sys.path[:0] = {path!r}
from tests.training.helpers import flat, network, task
from wonderland.training import Stopping, train
found = train(
    network(), "cross_entropy", task(np.random.default_rng(0)), validation=0.2, epochs=400,
    batch_size=20, optimizer="momentum", schedule="one_cycle", average="ema",
    snapshots={snapshots!r}, snapshot_minutes=0.0,
)
np.save({result!r}, np.concatenate([flat(found.model), found.evidence["history"].loss]))
"""


@pytest.fixture
def data(rng):
    return task(rng)


class KilledError(Exception):
    pass


def test_an_interrupted_run_ends_in_the_same_bits(data, tmp_path):
    whole = train(network(), "cross_entropy", data, recipe=RECIPE, validation=0.2)

    def kill(record):
        if record.epoch == 2:
            raise KilledError

    kept = {"recipe": RECIPE, "validation": 0.2, "snapshots": tmp_path / "run"}
    with pytest.raises(KilledError):
        train(network(), "cross_entropy", data, callbacks=(kill,), **kept)
    for _ in range(2):  # a finished run is read back as it ended
        again = train(network(), "cross_entropy", data, **kept)
        np.testing.assert_array_equal(flat(whole.model), flat(again.model))
        for name in ("loss", "validation_loss", "learning_rate", "step"):
            one, two = (getattr(run.evidence["history"], name) for run in (whole, again))
            np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_in_the_same_bits(tmp_path, rng):
    kills = int(os.environ.get("WONDERLAND_TEST_KILLS", "5"))

    def run(name):
        files = {"snapshots": str(tmp_path / name), "result": str(tmp_path / f"{name}.npy")}
        program = RUN.format(path=sys.path, **files)
        return subprocess.Popen([sys.executable, "-W", "ignore", "-c", program])

    assert run("unbroken").wait(100) == 0
    for _ in range(kills):
        process, snapshot = run("broken"), tmp_path / "broken"
        seen = snapshot.stat().st_mtime_ns if snapshot.exists() else 0
        while process.poll() is None and (
            not snapshot.exists() or snapshot.stat().st_mtime_ns == seen
        ):
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert run("broken").wait(100) == 0
    one, two = (np.load(tmp_path / f"{name}.npy") for name in ("unbroken", "broken"))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model": network(1)}, "model"),
        ({"learning_rate": 0.5}, "recipe"),
        ({"key": 5}, "random key"),
    ],
)
def test_a_snapshot_of_another_run_is_refused_and_left(data, tmp_path, change, part):
    file = tmp_path / "run"
    train(network(), "cross_entropy", data, recipe=RECIPE, snapshots=file)
    before = file.read_bytes()
    model = change.pop("model", network())
    with pytest.raises(wl.InputError, match=f"a run with another {part}"):
        train(model, "cross_entropy", data, recipe=RECIPE, snapshots=file, **change)
    assert file.read_bytes() == before


def test_a_file_of_something_else_is_refused(data, tmp_path):
    wl.save(wl.LinearRegression(), tmp_path / "model")
    (tmp_path / "text").write_text("a text")
    for name in ("model", "text"):
        with pytest.raises(wl.InputError, match=r"no snapshot|does not begin"):
            train(network(), "cross_entropy", data, recipe=RECIPE, snapshots=tmp_path / name)


@pytest.mark.parametrize("place", ["/proc/run", "nowhere/run", "."])
def test_a_place_that_cannot_be_written_is_told_at_once(data, tmp_path, place):
    with pytest.raises(wl.InputError, match="snapshots cannot be written"):
        train(network(), "cross_entropy", data, recipe=RECIPE, snapshots=tmp_path / place)


def test_a_full_disk_is_told_and_loses_nothing(data, tmp_path):
    file = tmp_path / "run"
    train(network(), "cross_entropy", data, recipe=RECIPE, snapshots=file, epochs=1)
    file.rename(tmp_path / "earlier")
    whole = train(network(), "cross_entropy", data, recipe=RECIPE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # No file may grow beyond 2 kB: to the program it is a disk that is full.
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limits[1]))
        with pytest.warns(RuntimeWarning, match="No snapshot could be written"):
            found = train(network(), "cross_entropy", data, recipe=RECIPE, snapshots=file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    np.testing.assert_array_equal(flat(found.model), flat(whole.model))
    assert os.listdir(tmp_path) == ["earlier"]
