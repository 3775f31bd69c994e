"""What runs from a shell: `profuse-opt`, `profuse-run`, the cache, the report of a run."""
