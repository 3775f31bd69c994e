"""For every test: what earlier runs have compiled must not answer for this checkout's compiler,
and most count what each call does, so that they wait for compiles; see test_background.py."""

import os

import pytest

# In the environment, so that it holds for the processes that tests start, too.
os.environ["PROFUSE_CACHE"] = "off"
os.environ["PROFUSE_BACKGROUND"] = "off"


@pytest.fixture(autouse=True)
def no_earlier_events():
    """Tests look at the events behind those that were there: the ring has to have room for them."""
    from profuse.executor import events

    events.clear()
