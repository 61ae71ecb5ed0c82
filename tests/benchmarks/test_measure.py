import json
import time

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks.measure import (
    Case,
    Contender,
    Figure,
    Goal,
    Machine,
    best_of,
    machine,
    race,
    render,
    show,
)


def _sleeper(seconds):
    def run():
        time.sleep(seconds)
        return seconds

    return run


def test_best_of_measures_what_passes_and_keeps_the_outcomes():
    seconds, outcomes = best_of([_sleeper(0.002), _sleeper(0.02)], rounds=2)
    assert outcomes == [0.002, 0.02]
    assert 0.002 <= seconds[0] < seconds[1]
    assert seconds[1] >= 0.02


def test_race_gives_ratios_to_ours_and_the_limit_of_the_machine():
    host = Machine(cores=1, matmul={"NumPy": 1e9, "XLA": 2e9}, bandwidth=1e9)
    case = Case(
        "sleeping",
        [Contender("ours", _sleeper(0.002)), Contender("peer", _sleeper(0.02), lambda s: 2 * s, 3)],
        flops=2e6,
        bytes=4e6,
    )
    result = race(case, host, rounds=2)
    assert result.ratios[0] == 1.0
    assert result.ratios[1] == pytest.approx(result.seconds[1] / result.seconds[0])
    assert result.quality == [None, 0.04]
    assert result.limit == pytest.approx(4e-3)
    assert result.limited_by == "memory"


def test_limit_names_what_binds():
    host = Machine(cores=1, matmul={"NumPy": 1e9}, bandwidth=1e9)
    assert host.limit(flops=3.0, size=2.0) == (3e-9, "compute")
    assert host.limit(flops=2.0, size=3.0) == (3e-9, "memory")


@pytest.mark.parametrize(
    ("goal", "figure", "met"),
    [(Goal(2.0, True), 2.5, True), (Goal(2.0, True), 1.5, False), (Goal(0.3, False), 0.2, True)],
)
def test_goal(goal, figure, met):
    assert goal.met(figure) is met
    word = "met" if met else "MISSED"
    assert word in render([Figure("import", figure, "s", goal)])


def test_text_stays_within_a_terminal_and_json_says_the_same(capsys):
    host = Machine(cores=2, matmul={"NumPy": 1e11, "XLA": 2e11}, bandwidth=3e10)
    case = Case("work", [Contender("ours", int), Contender("peer", list, len, 1e9)], bytes=1.0)
    result = race(case, host, rounds=1)
    text = render([result], host)
    assert max(map(len, text.splitlines())) <= 100
    assert "MISSED" in text
    show([result, Figure("start", 0.5, "s")], host, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["machine"]["bandwidth"] == 3e10
    assert document["cases"][0]["seconds"] == result.seconds
    assert document["figures"][0]["value"] == 0.5


@pytest.mark.slow
def test_machine_is_measured_within_what_machines_do():
    host = machine()
    assert 1e9 < host.peak < 1e14
    assert 1e9 < host.bandwidth < 1e13
    assert np.isfinite(list(host.matmul.values())).all()


def test_runner_lists_by_docstring_and_refuses_unknown_names(capsys):
    assert runner.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in runner.available())
    assert "measure" not in runner.available()
    assert runner.main(["lnear"]) == 2
    assert "linear" in capsys.readouterr().err
    assert runner.main([]) == 2
    assert runner.main(["--help"]) == 0
    assert "NAME" in capsys.readouterr().out
