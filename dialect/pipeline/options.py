"""The pipelines of compile requests, as strings: the standard ones with options."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..dataclass import dataclass
from ..ir.gradient_mode import LOOP_BYTES


@dataclass(frozen=True)
class PipelineOptions:
    """The options that a compile gives to the standard pipelines; a new fuser gets fields here.

    Attributes:
        min_size: option of `form-fusions`: least number of ops in a group.
        max_values: option of `form-fusions`: largest number of operands and results of a group.
        max_ops: option of `form-fusions`: largest number of ops in a group.
        dynamic: True = the sizes of profiled groups are symbols.
        stable_sizes: sizes that stay literal in dynamic guards.
        units: option of `assume-sizes`: axes of size 1.
        contiguous: option of `assume-sizes`: C-contiguous inputs.
        fuse: False = form no groups of profiled types, hence no guards and no fallbacks.
        gradients: True = differentiate subgraphs, which executors of their own fuse (R1.27).
        inlines: False = no differentiable subgraph is too small (R1.29, R1.34, R2.15).
        budget: share of what subgraphs would keep for their gradients that they may keep.
        loop_bytes: what the gradient of a loop may keep of its rounds.
        on_tape: True = keep the ops that only gradients differ by.
        exact: True = fuse only what kernels compute to the last bit as NumPy does.
        whole_loops: True = no loop runs round by round because that takes less time.
        leave: the devices whose ops the fuser of device groups takes: "", "cuda" or "all" (A7).
        chip: option of `partition-device-groups`: what the device is; "" = not known, or there is none.
        single: option of `partition-device-groups`: groups of one op.
        horizontal: option of `partition-device-groups`: groups side by side become one.
        before: users' passes that run before fusion (R2.12).
        after: users' passes that run after fusion, and after guards have been inserted (R2.12).
    """

    min_size: int = 1
    max_values: int = 128
    max_ops: int = 128
    dynamic: bool = False
    stable_sizes: Iterable[int] = ()
    units: str = ""
    contiguous: str = ""
    fuse: bool = True
    gradients: bool = False
    inlines: bool = True
    budget: float = 1.0
    loop_bytes: int = LOOP_BYTES
    on_tape: bool = False
    exact: bool = False
    whole_loops: bool = False
    leave: str = ""
    chip: str = ""
    single: bool = False
    horizontal: bool = True
    before: str = ""
    after: str = ""

    def optimizing(self) -> str:
        """The pipeline string that turns an instrumented graph into a guarded, fused one.

        R1.12, R1.24 - R1.27, R1.36, R1.41, R1.45.
        The profile-insensitive passes run here, on a graph that has its observers already, and not
        before profiling. So the first call needs no MLIR; see docs/architecture.md.
        """
        first = f"profile-insensitive{'{gradients=true}' if self.on_tape else ''}"
        if self.gradients:
            inner = [*([] if self.inlines else ["threshold=1"]), *self._kept()]
            grad = f"(grad{{{' '.join(inner)}}})" if inner else "grad"
            return f"{first},profile-driven{{{' '.join([*self._tape(), f'no-grad={grad}'])}}},final,dce"
        options = [*self._tape(), *self._kernels()]
        if not self.fuse:
            options.append(f"general-fuser=no-fuser{f'{{leave={self.leave}}}' if self.leave else ''}")
        else:
            left = [f"leave={self.leave}"] if self.leave else []
            options += [*self._limits(), *self._behavior(), *left]
        options += self._users(self._device_fuser())
        return f"{first},profile-driven{{{' '.join(options)}}},final,prepare-kernels"

    def keyed(self) -> str:
        """The pipeline string for a graph whose input types a spec has fixed (R2.10)."""
        if self.gradients:
            options = [*self._tape(), *self._kept()]
            if not self.inlines:
                options += ["threshold=1", "inline-subgraphs=(inline-diff-graphs{threshold=1})"]
            return f"spec-driven-grad{{{' '.join(options)}}},final,dce"
        layouts = _named({"unit-axes": self.units, "contiguous": self.contiguous})
        options = [*self._tape(), *self._kernels(), *self._limits(), *layouts, *self._users()]
        return f"spec-driven{{{' '.join(options)}}},final,prepare-kernels"

    def _left_over(self) -> str:
        """The general fuser for what is in no device group: without a kernel it would run op by op."""
        forming = [
            *self._limits(),
            *(["dynamic=true"] if self.dynamic else []),
            *(["exact=true"] if self.exact else []),
        ]
        guarding = f"insert-guards{{{' '.join(self._behavior())}}}" if self.dynamic else "insert-guards"
        return f"form-fusions{{{' '.join(forming)}}},{guarding},keep-layouts"

    def _behavior(self) -> list[str]:
        if not self.dynamic:
            return []
        return ["dynamic=true", *_named({"stable-sizes": ":".join(map(str, sorted(self.stable_sizes)))})]

    def _tape(self) -> list[str]:
        return ["gradients=true"] if self.on_tape else []

    def _kernels(self) -> list[str]:
        return [f"{name}=true" for name, is_on in (("exact", self.exact), ("whole", self.whole_loops)) if is_on]

    def _limits(self) -> list[str]:
        return [f"min-size={self.min_size}", f"max-values={self.max_values}", f"max-ops={self.max_ops}"]

    def _users(self, first: str = "") -> list[str]:
        after = ",".join(text for text in (first, self.after) if text)
        return [f"{n}=({text})" for n, text in (("pre-fusion", self.before), ("post-fusion", after)) if text]

    def _device_fuser(self) -> str:
        """The fuser of device groups, a pass after fusion that users' own follow (R3.2)."""
        if not self.leave:
            return ""
        flags = {
            "max-values": str(self.max_values),
            "max-ops": str(self.max_ops),
            # Kernels read a chunk where it lies, and what joins arrays is an op of theirs. Outside of groups these
            # would be evaluated, arrays of a device on the host.
            "leading-chunks": "true",
            "concat": "true",
            "chunks": "false",
            "host": "true" if self.leave == "all" else "",
            "chip": self.chip,
            "single": "true" if self.single else "",
            "horizontal": "" if self.horizontal else "false",
            "left-over": f"({self._left_over()})" if self.fuse else "",
        }
        return f"device-fuser{{{' '.join(_named(flags))}}}"

    def _kept(self) -> list[str]:
        """The options of `differentiate-diff-graphs` that say what may be kept."""
        budget = "" if self.budget >= 1 else str(round(100 * self.budget))
        return _named({"budget": budget, "loop-bytes": "" if self.loop_bytes == LOOP_BYTES else str(self.loop_bytes)})


def _named(texts: dict[str, str]) -> list[str]:
    """Options of pipelines, those without a text left out."""
    return [f"{name}={text}" for name, text in texts.items() if text]


def keeping_loops(pipeline: str, numbers: Iterable[int], option: str = "keep") -> str:
    """A pipeline string by which these loops, too, stay what they are (`fuse-loops`).

    ``option="alone"``: by which no others go with them.
    """
    wanted = sorted(numbers)
    option_value = re.search(rf"(?<=\b{option}=)[0-9:]+", pipeline)
    if not wanted:
        return pipeline
    if option_value is not None:
        listed = ":".join(map(str, sorted({*map(int, option_value[0].split(":")), *wanted})))
        return f"{pipeline[: option_value.start()]}{listed}{pipeline[option_value.end() :]}"
    listed = ":".join(map(str, wanted))
    return re.sub(r"\b(profile-driven|spec-driven)\{", rf"\1{{{option}={listed} ", pipeline, count=1)
