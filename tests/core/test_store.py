"""Storage: what goes in comes out bit for bit; anything altered or foreign is refused."""

import json
import os
import pickle
import subprocess
import sys
from enum import Enum

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import wonderland as wl
from wonderland.core import store
from wonderland.core.errors import InputTypeError, StoreError
from wonderland.core.evidence import Claim, Evidence
from wonderland.core.random import key_of
from wonderland.core.status import Status
from wonderland.linear.model import LinearModel


@wl.storable
def cube(X):
    return X**3


@wl.storable
class Plain:
    def __init__(self, value):
        self.value = value


@wl.storable
class Colour(Enum):
    RED = "red"


def unknown(X):
    return X


class Foreign:
    pass


def around(value, tmp_path):
    path = tmp_path / "value.wl"
    wl.save(value, path)
    return wl.load(path)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(2**80), 0.1, float("inf"), float("-inf"), float("nan"), -0.0, "",
        "naïve ∑", [],
        [1, [2.5, None]], (), (1, ("a",)), {}, {"a": 1}, {1: {"b": (2,)}}, {(1, 2): "pair"},
        {"array": 1}, {"object": "x", "state": []}, [{"tuple": [1]}],
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values(value, tmp_path):
    again = around(value, tmp_path)
    assert type(again) is type(value)
    assert wl.testing.same(again, value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10)[::3],
        np.empty((0, 3)),
        np.empty(0, np.int32),
        np.array(3.5),
        np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        np.array([1, 2], ">f8"),
        np.array([1, 2], ">i4"),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([1.5], np.float16),
        np.array(["a", "naïve"]),
        np.array([["x"], ["yy"]], object),
        np.array([None, "a", 1.5, True], object),
        np.array([], dtype="U3"),
        np.arange(3, dtype=np.uint8),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_arrays_keep_type_shape_and_bits(array, tmp_path):
    again = around(array, tmp_path)
    assert type(again) is np.ndarray
    assert again.dtype == array.dtype
    assert again.dtype.str == array.dtype.str
    assert wl.testing.same(np.ascontiguousarray(again), np.ascontiguousarray(array))
    assert again.flags.writeable


@pytest.mark.parametrize("scalar", [np.float32(0.1), np.int64(7), np.bool_(True), np.str_("a")])
def test_numpy_scalars(scalar, tmp_path):
    again = around(scalar, tmp_path)
    assert type(again) is type(scalar)
    assert again == scalar


@pytest.mark.parametrize("dtype", [np.dtype(np.float64), np.dtype(">i2")])
def test_dtypes_and_types(dtype, tmp_path):
    assert around(dtype, tmp_path) == dtype
    assert around(np.float32, tmp_path) is np.float32


def test_jax_arrays_come_back_as_jax_arrays(tmp_path):
    again = around(jnp.arange(3), tmp_path)
    assert isinstance(again, jnp.ndarray)
    np.testing.assert_array_equal(again, np.arange(3))


def test_the_librarys_objects(tmp_path):
    evidence = Evidence([Claim.below("a", np.array([1.0, 2.0]), 3.0, "m")])
    again = around({"e": evidence, "s": Status.TIME, "m": LinearModel(np.ones(2), 0.5)}, tmp_path)
    assert isinstance(again["e"], Evidence)
    assert str(again["e"]) == str(evidence)
    assert again["s"] is Status.TIME
    assert again["m"](np.ones(2)) == 2.5


def test_registered_functions_classes_and_enums(tmp_path):
    assert around(cube, tmp_path) is cube
    assert around(Plain(np.ones(2)), tmp_path).value.tolist() == [1.0, 1.0]
    assert around(Colour.RED, tmp_path) is Colour.RED
    assert around(np.sqrt, tmp_path) is np.sqrt
    assert around(jnp.tanh, tmp_path) is jnp.tanh


def test_equinox_modules(tmp_path, rng):
    layer = eqx.nn.Linear(2, 3, key=key_of(0))
    again = around(layer, tmp_path)
    np.testing.assert_array_equal(again(jnp.ones(2)), layer(jnp.ones(2)))


@pytest.mark.parametrize(
    "value",
    [unknown, Foreign(), lambda X: X, object(), np.array([object()], object), {1, 2}, b"raw"],
)
def test_what_would_need_pickle_is_refused_in_a_sentence(value, tmp_path):
    path = tmp_path / "value.wl"
    with pytest.raises(InputTypeError, match="without pickle"):
        wl.save({"inside": [value]}, path)
    assert not list(tmp_path.iterdir()), "a refused save leaves no file, not even a temporary one"


class OwnModule(eqx.Module):
    """Of equinox's kind, but from a module that a loading process would not trust."""

    value: float = 1.0


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(InputTypeError, match="OwnModule cannot be stored"):
        wl.save(OwnModule(), tmp_path / "own.wl")


def saved(tmp_path):
    path = tmp_path / "model.wl"
    X = np.arange(12.0).reshape(6, 2) % 5
    wl.save(wl.Ridge(0.5).fit(X, X @ [1.0, 2.0] + 1.0), path)
    return path


def test_every_truncation_is_refused(tmp_path):
    path = saved(tmp_path)
    raw = path.read_bytes()
    for length in [*range(0, 64), *range(64, len(raw), 17), len(raw) - 1]:
        path.write_bytes(raw[:length])
        with pytest.raises(StoreError):
            wl.load(path)


def test_every_altered_byte_is_refused(tmp_path):
    path = saved(tmp_path)
    raw = path.read_bytes()
    for place in [*range(0, 64), *range(64, len(raw), 13), len(raw) - 1]:
        wrong = bytearray(raw)
        wrong[place] ^= 1 << (place % 8)
        path.write_bytes(wrong)
        with pytest.raises(StoreError):
            wl.load(path)


def test_appended_bytes_are_refused(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(StoreError, match="truncated or altered"):
        wl.load(path)


@pytest.mark.parametrize("raw", [b"", b"WNDRLND", pickle.dumps([1]), b"PK\x03\x04zip", b"{}"])
def test_foreign_files_are_refused(raw, tmp_path):
    (tmp_path / "other.bin").write_bytes(raw)
    with pytest.raises(StoreError, match=r"other\.bin"):
        wl.load(tmp_path / "other.bin")


def forge(path, header: dict, arrays: bytes = b""):
    """A file with a valid checksum whose content this library would not have written."""
    text = json.dumps(header).encode()
    length = len(text).to_bytes(8, "little")
    path.write_bytes(store.MAGIC + length + store._digest(length, text, arrays) + text + arrays)


@pytest.mark.parametrize(
    "recipe",
    [
        {"object": "os:system", "state": []},
        {"function": "os:system"},
        {"type": "subprocess:Popen"},
        {"object": "tests.core.test_store:Foreign", "state": []},
        {"object": "wonderland.linear.ridge:NoSuchThing", "state": []},
        {"object": "wonderland.no_such_module:Thing", "state": []},
        {"object": "wonderland.core.store:os.system", "state": []},
        {"function": "wonderland.core.store:os.system"},
        {"function": "wonderland.core.store:os"},
        {"function": "numpy:load"},
        {"array": 0},
        {"array": 7},
        {"tuple": 5},
        {"nonsense": True},
    ],
    ids=str,
)
def test_a_forged_recipe_runs_nothing(recipe, tmp_path):
    """Only classes and functions that this library itself would have written are found."""
    path = tmp_path / "forged.wl"
    forge(path, {"format": 1, "version": "0", "recipe": recipe, "arrays": []})
    if recipe == {"function": "numpy:load"}:  # found, as any NumPy function, but never called
        assert wl.load(path) is np.load
        return
    with pytest.raises(StoreError):
        wl.load(path)


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "future.wl"
    forge(path, {"format": 2, "version": "9", "recipe": 1, "arrays": []})
    with pytest.raises(StoreError, match="format"):
        wl.load(path)


def test_an_array_that_reaches_beyond_the_file_is_refused(tmp_path):
    path = tmp_path / "short.wl"
    entry = {"dtype": "<f8", "shape": [100], "offset": 0}
    forge(path, {"format": 1, "version": "0", "recipe": {"array": 0}, "arrays": [entry]}, bytes(64))
    with pytest.raises(StoreError):
        wl.load(path)
    entry["dtype"] = "O"
    forge(
        path, {"format": 1, "version": "0", "recipe": {"array": 0}, "arrays": [entry]}, bytes(800)
    )
    with pytest.raises(StoreError):
        wl.load(path)


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        wl.save([1], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_fresh_process_loads_it(tmp_path):
    path = saved(tmp_path)
    program = f"import wonderland as wl; m = wl.load({str(path)!r}); print(m.coef_.tobytes().hex())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == wl.load(path).coef_.tobytes().hex()


def test_a_path_that_is_not_there_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        wl.load(tmp_path / "nothing.wl")
    with pytest.raises(FileNotFoundError):
        wl.save(1, tmp_path / "no" / "folder.wl")
