"""Evidence: verdicts are computed, the table is a table, the dictionary is JSON."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from wonderland.core.evidence import Claim, Evidence


@pytest.fixture
def evidence():
    return Evidence(
        [
            Claim.fact("solver", "qr+refinement", "it was small"),
            Claim.below("gradient_norm", 1e-9, 1e-6, "largest entry"),
            Claim.above("rank", 2, 3, "independent <columns>"),
        ]
    )


def test_verdicts_are_computed():
    assert Claim.below("a", 1.0, 1.0, "m").holds is True
    assert Claim.below("a", np.array([0.5, 2.0]), 1.0, "m").holds is False
    assert Claim.below("a", float("nan"), 1.0, "m").holds is False
    assert Claim.above("a", 3, 3, "m").holds is True
    assert Claim.above("a", float("nan"), 3, "m").holds is False
    assert Claim.fact("a", 3, "m").holds is None


def test_it_is_an_ordered_mapping(evidence):
    assert list(evidence) == ["solver", "gradient_norm", "rank"]
    assert len(evidence) == 3
    assert evidence["rank"].value == 2
    assert "nothing" not in evidence
    with pytest.raises(KeyError):
        evidence["nothing"]
    with pytest.raises(TypeError):
        evidence["rank"] = None


def test_with_claims_replaces_and_adds_without_changing_the_first(evidence):
    more = evidence.with_claims(Claim.fact("rank", 3, "m"), Claim.fact("new", 1, "m"))
    assert list(more) == ["solver", "gradient_norm", "rank", "new"]
    assert more["rank"].value == 3
    assert evidence["rank"].value == 2


def test_failing_names_the_broken_promises(evidence):
    assert [claim.name for claim in evidence.failing] == ["rank"]


def test_the_table_is_aligned_and_says_what_fails(evidence):
    lines = str(evidence).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["claim", "value", "bound", "holds", "meaning"]
    start = lines[0].index("meaning")
    assert [line[start:] for line in lines[1:]] == [
        "it was small",
        "largest entry",
        "independent <columns>",
    ]
    assert "FAILS" in lines[3]
    assert "holds" in lines[2]
    assert repr(evidence) == str(evidence)


def test_html_escapes_what_it_shows(evidence):
    page = evidence._repr_html_()
    assert "independent &lt;columns&gt;" in page
    assert "<columns>" not in page
    assert page.count("<tr") == 4


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (jnp.ones(2), [1.0, 1.0]),
        (np.array([[1, 2]]), [[1, 2]]),
        ((1, "a", None), [1, "a", None]),
        ({"x": (1.5,)}, {"x": [1.5]}),
        (float("inf"), "inf"),
        (np.array([np.nan, 1.0]), ["nan", 1.0]),
        (complex(1, 2), "(1+2j)"),
    ],
)
def test_to_dict_is_plain_json(value, plain):
    made = Evidence([Claim.fact("it", value, "m")]).to_dict()
    assert made["it"]["value"] == plain
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_long_and_empty_values_keep_the_table_small():
    text = str(
        Evidence(
            [
                Claim.fact("a", "x" * 500, "m"),
                Claim.fact("b", np.arange(100.0), "m"),
                Claim.fact("c", np.empty(0), "m"),
            ]
        )
    )
    assert max(map(len, text.splitlines())) < 80
    assert "0 … 99" in text
    assert "(none)" in text
