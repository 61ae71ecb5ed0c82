"""The command line as a user meets it; results against the estimators it stands for."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import wonderland as wl
from wonderland.cli.main import main

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def houses(tmp_path, rng):
    """Paths of one table as Parquet and CSV, and its parts."""
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 3.0] + 5.0 + rng.normal(size=80)
    weight = rng.uniform(0.5, 2.0, size=80)
    columns = {"area": X[:, 0], "rooms": X[:, 1], "age": X[:, 2], "price": y, "trust": weight}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "houses.parquet")
    pc.write_csv(table, tmp_path / "houses.csv")
    pq.write_table(table.drop_columns(["price", "trust"]), tmp_path / "new.parquet")
    return tmp_path, X, y, weight


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_fit_prints_what_scikit_learn_finds(houses, capsys):
    folder, X, y, weight = houses
    code, out, err = run(
        capsys,
        *("fit", folder / "houses.parquet", "--target", "price", "--weight", "trust", "--json"),
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    oracle = LinearRegression().fit(X, y, weight)
    assert found["names"] == ["area", "rooms", "age"]
    np.testing.assert_allclose(found["coef"], oracle.coef_, rtol=1e-10)
    np.testing.assert_allclose(found["intercept"], oracle.intercept_, rtol=1e-10)
    assert found["evidence"]["rank"]["value"] == 3


def test_csv_gives_the_same_as_parquet(houses, capsys):
    folder, *_ = houses
    results = [
        run(capsys, "fit", folder / name, "--target", "price", "--json")[1]
        for name in ("houses.parquet", "houses.csv")
    ]
    one, other = (json.loads(text)["coef"] for text in results)
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_one_pass_gives_the_same_as_memory(houses, capsys, kind):
    folder, *_ = houses
    file = folder / f"houses.{kind}"
    if kind == "folder":
        file.mkdir()
        table = pq.read_table(folder / "houses.parquet")
        pq.write_table(table[:30], file / "a.parquet")
        pq.write_table(table[30:], file / "b.parquet")
    common = ("--target", "price", "--weight", "trust", "--features", "age,area", "--json")
    _, whole, _ = run(capsys, "fit", folder / "houses.parquet", *common)
    code, passed, err = run(capsys, "fit", file, *common, "--stream")
    assert (code, err) == (0, "")
    one, other = json.loads(whole), json.loads(passed)
    assert one["names"] == other["names"] == ["age", "area"]
    np.testing.assert_allclose(one["coef"], other["coef"], rtol=1e-9)
    np.testing.assert_allclose(one["standard_errors"], other["standard_errors"], rtol=1e-9)


def test_ridge_without_intercept_on_chosen_features(houses, capsys):
    folder, X, y, _ = houses
    _, out, _ = run(
        capsys,
        *("fit", folder / "houses.parquet", "--target", "price", "--features", "age,area"),
        *("--model", "ridge", "--alpha", "2.5", "--no-intercept", "--json"),
    )
    oracle = Ridge(2.5, fit_intercept=False).fit(X[:, [2, 0]], y)
    np.testing.assert_allclose(json.loads(out)["coef"], oracle.coef_, rtol=1e-10)


def test_fit_save_show_predict(houses, capsys):
    folder, *_ = houses
    model = folder / "price.wl"
    code, out, _ = run(
        capsys,
        *("fit", folder / "houses.csv", "--target", "price", "--features", "area,rooms,age"),
        *("--model", "ridge", "--degree", "2", "--test", "0.25", "--out", model),
    )
    assert code == 0
    assert "saved to" in out
    for word in ("area^2", "rooms age", "expected_risk", "generalisation_gap", "coverage"):
        assert word in out
    assert max(map(len, out.splitlines()[:-1])) <= 100

    code, shown, _ = run(capsys, "show", model)
    assert code == 0
    assert shown.strip() in out

    code, text, _ = run(capsys, "predict", model, folder / "new.parquet", "--level", "0.9")
    assert code == 0
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["price", "price from", "price to"]
    table = np.array(rows[1:], dtype=float)
    loaded = wl.load(model)
    frame = pq.read_table(folder / "new.parquet")
    np.testing.assert_array_equal(table[:, 0], loaded.predict(frame))
    np.testing.assert_array_equal(table[:, 1], loaded.prediction_interval(frame, 0.9)[0])
    assert ((table[:, 1] < table[:, 0]) & (table[:, 0] < table[:, 2])).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "{}/houses.parquet", "--target", "prize"], "Did you mean 'price'"),
        (["fit", "{}/nowhere.parquet", "--target", "price"], "there is no file"),
        (["fit", "{}/houses.xlsx", "--target", "price"], "ends in '.xlsx'"),
        (["fit", "{}/broken.parquet", "--target", "price"], "cannot be read"),
        (["fit", "{}/houses.csv", "--target", "price", "--alpha", "1"], "Add --model ridge"),
        (
            ["fit", "{}/houses.csv", "--target", "price", "--model", "ridge", "--alpha", "lo"],
            "Did you mean 'loo'",
        ),
        (["fit", "{}/houses.csv", "--target", "price", "--test", "2"], "a share from 0 up to 1"),
        (["fit", "{}/houses.csv", "--target", "price", "--degree", "0"], "degree"),
        (["fit", "{}/houses.csv", "--target", "price", "--stream", "--test", "0.5"], "one pass"),
        (["fit", "{}/nowhere.csv", "--target", "price", "--stream"], "there is no file"),
        (["fit", "{}/broken.parquet", "--target", "price", "--stream"], "cannot be read"),
        (["fit", "{}/words.csv", "--target", "price"], "'town' holds text"),
        (["show", "{}/houses.csv"], "does not begin like a wonderland file"),
        (["show", "{}/nowhere.wl"], "nowhere.wl: No such file"),
        (["show", "{}/unfitted.wl"], "before it was fitted"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(houses, capsys, arguments, sentence):
    folder, *_ = houses
    (folder / "broken.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    (folder / "words.csv").write_text("price,town\n1.0,Oxford\n2.0,Guildford\n3.5,Oxford\n")
    wl.save(wl.Ridge(), folder / "unfitted.wl")
    code, out, err = run(capsys, *(argument.format(folder) for argument in arguments))
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.startswith("wonderland: ")
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_predicting_without_a_column_names_it(houses, capsys):
    folder, *_ = houses
    model = folder / "price.wl"
    run(capsys, "fit", folder / "houses.parquet", "--target", "price", "--out", model)
    code, _, err = run(capsys, "predict", model, folder / "new.parquet")
    assert code == 2
    assert "has no column 'trust'" in err


def test_help_version_and_no_command(capsys):
    assert run(capsys, "--version")[:2] == (0, f"wonderland {wl.__version__}\n")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "wonderland demo" in out
    assert main([]) == 2
    assert main(["dance"]) == 2


def test_help_imports_neither_jax_nor_scikit_learn():
    code = (
        "import sys; from wonderland.cli.main import main; main(['--help']);"
        "print([name for name in ('jax', 'sklearn', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
