"""Specialisations of a graph as values: what a compile's result has become, and what is told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...dialect.dataclass import dataclass
from ..compile.request import CompileRequest, CompileResult
from ..plans.link import LinkedPlan
from ..plans.plan import Plan


class PlanWithFallbacks(NamedTuple):
    """The linked plan that a compile's result yields, with the executors behind its guards.

    Attributes:
        linked: the plan and the reasons that linking has collected.
        fallbacks: the fallback executors, by the name of the fallback function.
        halves: the executors of halves of differentiable subgraphs, by the name of the function.
    """

    linked: LinkedPlan
    fallbacks: dict[str, Any]
    halves: dict[str, Any]


@dataclass(frozen=True)
class Specialised:
    """One specialisation of a graph.

    Attributes:
        plan: the plan that runs the graph.
        request: the request that was compiled; None after the executor has released it.
        result: the result of that compile.
        seconds: time from the request to the installed plan.
        depth: number of re-specialisations that were left when the plan was made.
        about: description of the calls that the plan serves, for people.
    """

    plan: Plan
    request: CompileRequest | None
    result: CompileResult
    seconds: float
    depth: int = 0
    about: str = ""
