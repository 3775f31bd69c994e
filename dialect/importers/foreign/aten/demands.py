"""Contents of tensors that an operator of torch asks for: a call with others is an error, which torch words itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import BoundsError
from ...numpy.tracing.current import current
from ...numpy.tracing.traced_control import required


def demanded(value: Any, holds: Any, reason: str) -> Any:
    """``value``, where all of ``holds`` is true at run time; raises BoundsError outside of a trace, else Python's."""
    if current() is None:
        if not np.all(holds):
            raise BoundsError(reason)
        return value
    return required(value, np.all(holds), reason)
