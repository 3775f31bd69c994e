"""What `pip install` of a built package would bring along."""

import subprocess
import sys
from pathlib import Path

import profuse as pf

ROOT = Path(pf.__file__).parent
FOLDERS = ("dialect", "executor", "lowering", "tools")


def test_every_file_of_ours_is_installed(tmp_path):
    """All modules are, and the page of reports with its style and script; tests, benchmarks and docs are not."""
    # As build backends run it, which call no script of this name.
    command = [sys.executable, "-c", "exec(open('setup.py').read())", "-q"]
    command += ["egg_info", "--egg-base", tmp_path, "build_py", "--build-lib", tmp_path / "lib"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    built = {p.relative_to(tmp_path / "lib" / "profuse").as_posix() for p in (tmp_path / "lib").rglob("*.*")}
    modules = {p.relative_to(ROOT).as_posix() for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")}
    data = {f"tools/report/{p.name}" for p in (ROOT / "tools" / "report").glob("*.[hcj]*")}
    assert built == {"__init__.py", "nn.py", "py.typed", *modules, *data}
