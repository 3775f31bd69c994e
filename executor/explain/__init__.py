"""Reports of an executor on itself: state, explanations, advice, stages.

Calls do not need this room, so each name is imported on first access.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .explain import explain as explained
    from .stage_texts import stage_text, stages_of
    from .state import debug_state_of, state_of
    from .summary import dropped_traces

__all__ = ["debug_state_of", "dropped_traces", "explained", "stage_text", "stages_of", "state_of"]

_HOME = {
    "debug_state_of": "state",
    "dropped_traces": "summary",
    "explained": "explain",
    "stage_text": "stage_texts",
    "stages_of": "stage_texts",
    "state_of": "state",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f".{_HOME[name]}", __name__)
    return getattr(home, "explain" if name == "explained" else name)
