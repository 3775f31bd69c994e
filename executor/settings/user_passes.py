"""Passes of users around fusion (R1.36): text that joins the optimising pipeline.

As part of the pipeline string, the text reaches every `CompileRequest`, the replay line of a
failing pipeline, and `profuse-opt -p`. `dialect.passes.base.register_pass` registers a pass that is
written in Python; ``profuse-opt --load MODULE`` imports a module that does so.
"""

from __future__ import annotations

from ...dialect.ir.registration import Registration, Registry

_before: Registry[str] = Registry()
_after: Registry[str] = Registry()


def _register(text: str, home: Registry[str]) -> Registration[str]:
    from ...dialect.pipeline.execution import check_pipeline

    check_pipeline(text)
    return home.add(text)


def register_pass_before_fusion(pipeline: str) -> Registration[str]:
    """Run passes on each graph that is optimised from now on, before anything is fused.

    The passes see the instrumented graph: observers with their ``profiled_type``. Registered
    pipelines run in the order of registration. Raises PipelineError for a pass that does not exist.
    """
    return _register(pipeline, _before)


def register_pass_after_fusion(pipeline: str) -> Registration[str]:
    """Run passes on each graph that is optimised from now on, once it is fused and guarded.

    Raises PipelineError for a pass that does not exist.
    """
    return _register(pipeline, _after)


def registered() -> tuple[str, str]:
    """Pipeline texts to run before and after fusion; "" where there is none."""
    return ",".join(_before.items), ",".join(_after.items)
