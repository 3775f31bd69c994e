"""The part of an ONNX model that looks into texts, which Python runs ahead of the graph of arrays."""

from __future__ import annotations

from dataclasses import replace

from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from .onnx_texts import MOVING

# What the results of the operators are that look into texts: texts, or an array.
_RESULTS: dict[str, tuple[bool, ...]] = {
    "StringNormalizer": (True,),
    "StringConcat": (True,),
    "StringSplit": (True, False),
    "RegexFullMatch": (False,),
    "com.microsoft.Tokenizer": (True,),
}


def split(graph: ForeignGraph) -> ForeignGraph:
    """The graph without nodes that look into texts of arguments: it has their results as further arguments.

    These nodes, and those between the arguments and them, are the graph `ModelTexts.prologue`.
    """
    if graph.texts is None or not any(node.op in _RESULTS for node in graph.body.nodes):
        return graph
    chosen, arguments = _chosen(graph)
    computed = {number for node in chosen for number in node.results}
    is_chosen = {id(node) for node in chosen}
    rest = [node for node in graph.body.nodes if id(node) not in is_chosen]
    taken = {number for node in _walk(rest) for number in _operands(node)}
    handed = [number for node in chosen for number in node.results if number in taken]
    is_text = {
        number: kind
        for node in chosen
        for number, kind in zip(node.results, _RESULTS.get(node.op, (True,) * len(node.results)), strict=False)
    }
    used = [number for number in arguments if any(number in _operands(node) for node in chosen)]
    body = ForeignBlock(tuple(used), chosen, tuple(map(ValueRef, handed)))
    prologue = ForeignGraph(
        graph.name, body, tuple(arguments[number] for number in used), graph.constants, graph.source
    )
    assert not computed & {*arguments}
    first = 1 + max(number for node in _walk(graph.body.nodes) for number in (*node.results, *_operands(node)))
    inputs, nodes, names = [], [], []
    for k, number in enumerate(handed):
        names.append(f"text_{k}")
        while names[-1] in graph.parameters:
            names[-1] += "_"
        inputs.append(first + k if is_text[number] else number)
        if is_text[number]:
            attributes = {"name": names[-1], "texts": True}
            nodes.append(ForeignNode("profuse.Argument", (ValueRef(first + k),), attributes, (number,)))
    return replace(
        graph,
        body=ForeignBlock((*graph.body.inputs, *inputs), [*nodes, *rest], graph.body.outputs),
        parameters=(*graph.parameters, *names),
        texts=replace(graph.texts, prologue=prologue, handed=tuple(names)),
    )


def _chosen(graph: ForeignGraph) -> tuple[list[ForeignNode], dict[int, str]]:
    """The nodes that Python runs, and the names of arguments that are texts, by the numbers of their values."""
    names = dict(zip(graph.body.inputs, graph.parameters, strict=True))
    arguments: dict[int, str] = {}
    constants, candidates = {*graph.constants}, []
    of_texts: set[int] = set()
    for node in graph.body.nodes:
        operands = _operands(node)
        if node.op == "profuse.Argument" and node.attributes.get("texts"):
            arguments[node.results[0]] = names[operands[0]]
            of_texts.add(node.results[0])
        elif node.op == "Constant":
            constants.update(node.results)
            candidates.append(node)
        elif (
            (node.op in _RESULTS or node.op in MOVING)
            and not of_texts.isdisjoint(operands)
            and of_texts.union(constants).issuperset(operands)
        ):
            of_texts.update(node.results)
            candidates.append(node)
    needed: set[int] = set()
    chosen = []
    for node in reversed(candidates):
        if node.op in _RESULTS or not needed.isdisjoint(node.results):
            needed.update(_operands(node))
            chosen.append(node)
    return chosen[::-1], arguments


def _operands(node: ForeignNode) -> list[int]:
    """The numbers of the values that a node takes, those that its blocks give included."""
    outputs = [output for block in node.blocks for output in block.outputs]
    return [x.number for x in (*node.operands, *outputs) if type(x) is ValueRef]


def _walk(nodes: list[ForeignNode]) -> list[ForeignNode]:
    return [*ForeignBlock((), nodes, ()).walk()]
