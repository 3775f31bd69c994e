"""Models against NumPy, torch, torch.compile and JAX: an MLP, a transformer block, an LSTM.

Forward passes, and training steps whose backward pass is written out by hand, the same for all.
Measured, compared and told as `bench/kernels.py` does; the sizes are rows and widths.

    python bench/models.py [--quick] [--only REGEX] [--sizes cache l3] [--threads 1 2 all]
        [--peers …] [--budget SECONDS] [--json out.json] [--plot out.svg]
"""

from __future__ import annotations

from harness.main import main

if __name__ == "__main__":
    main(__doc__, "models")
