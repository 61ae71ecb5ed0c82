"""Every status is a sentence; the ones that fall short say what to try."""

import pytest

from wonderland.core.status import Status


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_sentence(status):
    assert status.sentence.endswith(".")
    assert status.sentence[0].isupper()


@pytest.mark.parametrize(
    "status", [Status.ITERATIONS, Status.TIME, Status.DIVERGED, Status.SINGULAR]
)
def test_what_fell_short_says_what_to_do(status):
    assert not status.ok
    assert any(word in status.sentence for word in ("raise", "scale", "pass", "Leave"))


def test_it_survives_being_a_number():
    for status in Status:
        assert Status(int(status)) is status
