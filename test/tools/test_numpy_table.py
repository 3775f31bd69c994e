"""The page of NumPy's functions follows the registries."""

from __future__ import annotations

import numpy as np
from profuse.tools.numpy_table import HOST, NATIVE, PYTHON, main, method_status, status


def test_the_page_is_current():
    assert main([]) == 0


def test_a_page_that_is_not_current_is_told(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    assert main(["--root", str(tmp_path)]) == 1
    assert "--write" in capsys.readouterr().err
    assert main(["--root", str(tmp_path), "--write"]) == 0
    assert main(["--root", str(tmp_path)]) == 0
    assert f"| `np.linalg.inv` | {HOST} | yes |" in (tmp_path / "docs" / "numpy.md").read_text()


def test_kinds_of_functions():
    assert status(np.tanh, "tanh") == (NATIVE, "yes")
    assert status(np.isnan, "isnan") == (NATIVE, "-")
    assert status(np.zeros, "zeros")[0] == NATIVE
    assert status(np.linalg.svd, "svd") == (HOST, "yes")
    assert status(np.linalg.eigvals, "eigvals") == (HOST, "no")
    assert status(np.cbrt, "cbrt")[0] == HOST
    assert status(np.save, "save") == (PYTHON, "-")
    assert method_status("sum")[0] == NATIVE
    assert method_status("argsort")[0] == HOST
    assert method_status("tofile")[0] == PYTHON
