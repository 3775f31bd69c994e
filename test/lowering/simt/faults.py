"""What a kernel did wrong, and where."""

from __future__ import annotations

from mlir import ir

Coordinates = tuple[int, int, int]


class Site:
    """An op of a kernel, for messages."""

    def __init__(self, kernel: str, op: ir.Operation) -> None:
        self.kernel, self.op = kernel, op.name
        self._operation = op

    @property
    def location(self) -> str:
        """The op's place in a file, or its text where it has no location."""
        location = str(self._operation.location)
        if location == "loc(unknown)":
            return f"`{str(self._operation).splitlines()[0].strip()}`"
        return location.removeprefix("loc(").removesuffix(")")

    def __str__(self) -> str:
        return f"@{self.kernel}, {self.op} at {self.location}"


class SimtError(Exception):
    """The emulator cannot run this: an op it does not know, or arguments that do not fit."""


class KernelFault(SimtError):
    """A kernel did what the device leaves undefined, or forgot to do what it must.

    Attributes:
        kind: one of ``bounds``, ``alignment``, ``race``, ``uninitialised``, ``read-only``,
            ``barrier``, ``shuffle``, ``poison``, ``division``, ``endless``.
        site: the op; None of a fault seen after the launches.
        block, thread: coordinates of the first thread at fault, where there is one.
    """

    def __init__(
        self,
        kind: str,
        what: str,
        site: Site | None = None,
        block: Coordinates | None = None,
        thread: Coordinates | None = None,
    ) -> None:
        self.kind, self.what, self.site = kind, what, site
        self.block, self.thread = block, thread
        text = f"{site}: {what}" if site else what
        if block is not None:
            text += f"; block {block}"
        if thread is not None:
            text += f", thread {thread}"
        super().__init__(text)
