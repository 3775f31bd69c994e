"""Reasons as values: words for every kind, the way through JSON, sums."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from profuse.dialect.errors import Loc, LoweringError
from profuse.dialect.reasons import Effect, Kind, Reason, summed

PLACE = Loc("model.py", 3, 4)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_words_that_show_what_it_is_given(kind):
    """No two kinds say the same, but for those that say what an error says."""
    full = Reason(kind, "exp", 7, "DETAIL", "SUBJECT", Effect.NOT_FUSED)
    assert str(full) == f"refused: exp: {full.why}"
    assert full.told == f"{full} (1x)"
    assert "{" not in full.why
    others = {replace(full, kind=other).why for other in Kind if other is not kind}
    assert full.why == "DETAIL" or full.why not in others


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("effect", Effect)
def test_json_gives_back_what_it_was_given(kind, effect):
    reason = Reason(kind, "exp", 0, "d", "s", effect, PLACE, "h", 3)
    for given in (reason, Reason(kind), replace(reason, loc=None)):
        assert Reason.from_json(json.loads(json.dumps(given.to_json()))) == given


def test_a_place_of_the_graph_is_left_open():
    reason = Reason(Kind.COMPLEX, "exp", loc=PLACE)
    data = reason.to_json([Loc("a.py", 1), PLACE])
    assert data["loc"] == 1
    there = Loc("other.py", 9)
    assert Reason.from_json(data, [Loc("a.py", 1), there]) == replace(reason, loc=there)
    with pytest.raises(IndexError):
        Reason.from_json(data, [there])


def test_what_an_error_says_has_its_place_and_hint():
    error = LoweringError("no way", loc=PLACE, hint="turn back")
    reason = Reason.of_error(Kind.NOT_LOWERED, error, subject="g", effect=Effect.INTERPRETED)
    assert str(reason) == f"group @g is interpreted: {error}"
    assert reason.told == str(reason), "nothing is counted"


def test_sums_forget_places_and_nothing_else():
    one = Reason(Kind.VARYING_SIZE, "exp", 0, effect=Effect.NOT_FUSED, loc=PLACE)
    given = [one, replace(one, operand=1), replace(one, loc=Loc("b.py", 1), count=2), one]
    assert summed(given) == [replace(one, loc=None, count=4), replace(one, operand=1, loc=None)]
