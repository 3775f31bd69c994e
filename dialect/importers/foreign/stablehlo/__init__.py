"""StableHLO: modules that `jax.export` writes, and text, as foreign graphs."""
