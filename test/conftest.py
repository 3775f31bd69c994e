"""For every test: what earlier runs have compiled must not answer for this checkout's compiler,
and most count what each call does, so that they wait for compiles; see test_background.py."""

import os

# In the environment, so that it holds for the processes that tests start, too.
os.environ["PROFUSE_CACHE"] = "off"
os.environ["PROFUSE_BACKGROUND"] = "off"
