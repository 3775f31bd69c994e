"""Archives of TorchScript, which `torch.jit.save` writes: zip files with code and constants."""

from __future__ import annotations

import os
import warnings
import zipfile

from ...dialect.errors import FileError
from ..plans.plan_options import Options
from .script_functions import ScriptFunction, script_function


def read(path: str | os.PathLike, options: Options) -> ScriptFunction:
    """The module in an archive, on the CPU.

    Raises FileError for other zip files and where torch is not installed, and what `ScriptFunction` raises.
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise FileError(f"{name} is a damaged zip file: {error}") from None
    root = names[0].partition("/")[0]
    if f"{root}/constants.pkl" not in names or not any(entry.startswith(f"{root}/code/") for entry in names):
        hint = "torch.save writes pickles, which need the model's code" if f"{root}/data.pkl" in names else None
        raise FileError(f"{name} is a zip file, but no archive of TorchScript", hint=hint)
    try:
        import torch
    except ImportError:
        raise FileError(
            f"{name} is an archive of TorchScript, which torch reads, and torch is not installed",
            hint="pip install profuse[torch]",
        ) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated is no news to who has an archive
        try:
            module = torch.jit.load(name, map_location="cpu")
        except RuntimeError as error:
            raise FileError(f"torch cannot read {name}: {str(error).splitlines()[0]}") from None
    return script_function(module, options, f"the TorchScript module {os.path.basename(name)}")
