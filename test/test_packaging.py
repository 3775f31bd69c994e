"""What `pip install` of a built package would bring along."""

import tomllib
from pathlib import Path

import profuse as pf

ROOT = Path(pf.__file__).parent


def test_every_package_of_ours_is_installed():
    found = {
        ".".join(("profuse", *path.parent.relative_to(ROOT).parts))
        for part in ("dialect", "executor", "lowering", "tools")
        for path in (ROOT / part).rglob("__init__.py")
    }
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({"profuse", *found})
