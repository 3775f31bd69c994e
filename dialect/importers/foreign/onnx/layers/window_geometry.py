"""Where the windows of ONNX's convolutions and pools lie: their padding, distance, number."""

from __future__ import annotations

from collections.abc import Sequence

from .....dataclass import dataclass
from .....errors import ShapeError, TraceError
from ...window_axes import window_count


@dataclass(frozen=True)
class Axis:
    """The windows along one axis.

    Attributes:
        size: elements of the axis.
        kernel: elements of a window.
        stride: the distance of windows.
        dilation: the distance of the elements of a window.
        before, behind: elements that are added at the ends, as the node says.
        count: how many windows there are.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    behind: int
    count: int

    @property
    def span(self) -> int:
        """How many elements lie between the first of a window and the last, both counted."""
        return self.dilation * (self.kernel - 1) + 1

    @property
    def end(self) -> int:
        """How many elements have to be added behind so that the last window is whole; negative: so many are unused."""
        return (self.count - 1) * self.stride + self.span - self.before - self.size


def axes_of(
    sizes: Sequence[int],
    kernel: Sequence[int],
    auto_pad: str,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
    *,
    ceil_mode: int = 0,
) -> list[Axis]:
    """The windows along each spatial axis, by ONNX's attributes.

    Raises ShapeError where no window fits, TraceError for another ``auto_pad``.
    """
    count = len(sizes)
    dilations = dilations or (1,) * count
    strides = strides or (1,) * count
    pads = pads or (0,) * (2 * count)
    axes = []
    for k, (n, size) in enumerate(zip(sizes, kernel, strict=True)):
        stride, span = strides[k], dilations[k] * (size - 1) + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            windows = -(-n // stride)
            total = max(0, (windows - 1) * stride + span - n)
            less, more = total // 2, total - total // 2
            before, behind = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
        elif auto_pad in ("NOTSET", "VALID"):
            before, behind = (pads[k], pads[k + count]) if auto_pad == "NOTSET" else (0, 0)
            free = n + before + behind - span
            if free < 0:
                raise ShapeError(f"the kernel spans {span} elements of an axis, the padded input has {free + span}")
            windows = window_count(n, span, stride, before, behind, ceil_mode=bool(ceil_mode))
        else:
            raise TraceError(f"auto_pad={auto_pad!r} is not known")
        axes.append(Axis(n, size, stride, dilations[k], before, behind, windows))
    return axes
