"""Readers of local files, on small files made here and on the reference data."""

import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import wonderland as wl


def test_libsvm_files(tmp_path, rng):
    X = np.round(rng.normal(size=(20, 6)), 3) * (rng.random((20, 6)) < 0.4)
    X[7] = 0.0
    y = rng.choice([-1.0, 1.0], size=20)
    for first in (0, 1):
        path = tmp_path / f"table{first}.txt"
        dump_svmlight_file(X, y, str(path), zero_based=first == 0, comment="a comment")
        found = wl.datasets.load_libsvm(path, columns=6, first=first, source="made here")
        np.testing.assert_allclose(found.X.toarray(), X)
        np.testing.assert_array_equal(found.y, y)
        assert found.source == "made here"
        assert isinstance(found.X, sp.csr_array)


def test_libsvm_columns_count_from_one_unless_zero_occurs(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 1:2\n")
    assert wl.datasets.load_libsvm(path).X.shape == (1, 1)
    path.write_text("1 0:2 # first\n\n-1\n")
    found = wl.datasets.load_libsvm(path)
    assert found.X.shape == (2, 1)
    assert found.X.nnz == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "no samples"),
        ("1 1:2\n+1 2:x\n", {}, "sample 2"),
        ("1 2\n", {}, "sample 1"),
        ("1,2 1:3\n", {}, "Labels with commas"),
        ("1 0:3\n", {"first": 1}, "whole numbers from 1"),
        ("1 1.5:3\n", {}, "whole numbers"),
        ("1 9:3\n", {"columns": 4}, "larger columns"),
    ],
)
def test_libsvm_lines_that_cannot_be_read(text, options, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(wl.InputError, match=message):
        wl.datasets.load_libsvm(path, **options)


def idx(array):
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    head = bytes([0, 0, codes[array.dtype.str[1:]], array.ndim])
    sizes = np.array(array.shape, ">u4").tobytes()
    return head + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "i4", "f4", "f8"])
def test_idx_files(kind, tmp_path, rng):
    images = rng.integers(0, 100, size=(5, 3, 2)).astype(kind)
    labels = np.arange(5, dtype="u1")
    (tmp_path / "images.gz").write_bytes(gzip.compress(idx(images)))
    (tmp_path / "labels").write_bytes(idx(labels))
    found = wl.datasets.load_idx(tmp_path / "images.gz", tmp_path / "labels")
    np.testing.assert_array_equal(found.X, images.reshape(5, 6))
    np.testing.assert_array_equal(found.y, labels)
    assert found.X.dtype == np.dtype(kind)


def test_idx_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "a"
    whole = idx(np.zeros((2, 2), "u1"))
    for raw, message in (
        (b"PNG", "begins with"),
        (whole[:-1], "Copy the file again"),
        (whole[:6], "Copy the file again"),
    ):
        path.write_bytes(raw)
        with pytest.raises(wl.InputError, match=message):
            wl.datasets.read_idx(path)
    path.write_bytes(whole)
    (tmp_path / "b").write_bytes(idx(np.zeros(3, "u1")))
    with pytest.raises(wl.InputError, match="one label for each image"):
        wl.datasets.load_idx(path, tmp_path / "b")
    with pytest.raises(wl.InputError, match="cannot be read"):
        wl.datasets.read_idx(tmp_path / "missing")
    (tmp_path / "c.gz").write_bytes(b"not packed")
    with pytest.raises(wl.InputError, match="cannot be unpacked"):
        wl.datasets.read_idx(tmp_path / "c.gz")


def test_messages(tmp_path):
    text = "ham\tüber\tall\r\nspam\tWin!\n\n"
    (tmp_path / "a.tsv").write_bytes(text.encode())
    (tmp_path / "a.tsv.xz").write_bytes(lzma.compress(text.encode()))
    for name in ("a.tsv", "a.tsv.xz"):
        found = wl.datasets.load_sms(tmp_path / name)
        assert found.X.tolist() == ["über\tall", "Win!"]
        assert found.y.tolist() == ["ham", "spam"]
    (tmp_path / "b.tsv").write_text("ham\tx\nnone\n")
    with pytest.raises(wl.InputError, match="line 2, has no tabulator"):
        wl.datasets.load_sms(tmp_path / "b.tsv")


def test_real_files(shared_data):
    path = shared_data / "libsvm" / "heart_scale.libsvm.gz"
    X, y = load_svmlight_file(str(path))
    found = wl.datasets.load_libsvm(path)
    assert abs(found.X - X).max() == 0
    np.testing.assert_array_equal(found.y, y)
    part = shared_data / "mnist"
    digits = wl.datasets.load_idx(
        part / "t10k-images-idx3-ubyte.gz", part / "t10k-labels-idx1-ubyte.gz"
    )
    assert digits.X.shape == (10_000, 784)
    assert digits.y[:5].tolist() == [7, 2, 1, 0, 4]
    messages = wl.datasets.load_sms(shared_data / "sms_spam" / "SMSSpamCollection.tsv.gz")
    assert (messages.y == "spam").sum() == 747
    assert len(messages.X) == 5574
