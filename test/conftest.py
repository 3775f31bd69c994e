"""For every test: what earlier runs have compiled must not answer for this checkout's compiler."""

import os

# In the environment, so that it holds for the processes that tests start, too.
os.environ["PROFUSE_CACHE"] = "off"
