"""BLAKE2b from the module built into Python: `hashlib` would load OpenSSL, which is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
else:
    try:
        from _blake2 import blake2b
    except ImportError:  # a Python that was built without it
        from hashlib import blake2b

__all__ = ["blake2b"]
