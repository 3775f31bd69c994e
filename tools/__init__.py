"""Commands of the shell: `profuse-opt`, `profuse-run`, the cache, the report of a run."""
