"""Text into HTML: fragments of one file, filled in with everything escaped.

A fragment is a ``<template id="row">`` of ``fragments.html`` with ``${name}`` where values
go. Only what another fragment has made is taken as it is: names, IR and messages are text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from importlib.resources import files
from string import Template
from typing import Any

_FRAGMENT = re.compile(r'^<template id="([\w-]+)">\n(.*?)^</template>$', re.M | re.S)
# What HTML cannot hold, and what would make a line read other than it is (bidirectional controls).
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Markup(str):
    """HTML that a fragment has made."""

    __slots__ = ()


def escape(value: Any) -> str:
    """A value as text that stands in HTML, attributes included, and means itself."""
    if isinstance(value, Markup):
        return value
    text = _UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
    return html.escape(text, quote=True)


def join(parts: Iterable[Any]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(escape, parts)))


class Fragments:
    """The fragments of ``fragments.html``, and the whole of ``page.html`` as ``page``."""

    def __init__(self) -> None:
        fragments = _FRAGMENT.findall(self.asset("fragments.html"))
        self._templates = {name: Template(text.removesuffix("\n")) for name, text in fragments}
        self._templates["page"] = Template(self.asset("page.html"))

    @staticmethod
    def asset(name: str) -> str:
        """Text of a file beside this one."""
        return (files(__package__) / name).read_text("utf-8")

    def __call__(self, fragment: str, /, **values: Any) -> Markup:
        """One fragment, filled in; a missing value is a KeyError."""
        filled = {name: escape(value) for name, value in values.items()}
        return Markup(self._templates[fragment].substitute(filled))

    def each(self, fragment: str, rows: Iterable[dict[str, Any]]) -> Markup:
        """One fragment for every row."""
        return join(self(fragment, **row) for row in rows)


MARKUP = Fragments()
