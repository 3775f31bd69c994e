"""Instructions of a block that become one kernel of a device (R3.14 to R3.22). No MLIR.

A block is a list of nodes, each an instruction or a group of them, in an order in which it can run. A merge
moves the producer to just before the consumer, and what lies between and depends on the producer to just
behind it. Constants and sizes are no members: every group has copies of those that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from ..dataclass import dataclass
from ..ir.device import HOST
from ..ir.program import Block, Instr, Program
from ..ir.types import TensorType, Type
from .alias import Aliases, uses
from .chunk_motion import CHUNKS, ChunkMotion, is_size_query
from .group_copies import split_views, with_numbers
from .node_groups import Groups, chain
from .tidy import is_pure


@dataclass(frozen=True)
class GroupOptions:
    """The options of `DeviceGroups`.

    Attributes:
        max_values: most operands and results of two nodes, counted one by one, that are merged (R3.17).
        max_ops: most ops of a group; 0 = any number. Kernels of very many take long to compile.
        single: True = an op that no other joins becomes a group as well (R3.20).
        horizontal: True = nodes that read the same tensor are merged (R3.21).
        chunks: True = ops move behind the chunks of their results (R3.23).
    """

    max_values: int = 128
    max_ops: int = 0
    single: bool = False
    horizontal: bool = True
    chunks: bool = True


class Membership(Protocol):
    """The instructions that groups may have, and those of which they have copies (R3.15, R3.19)."""

    def devices(self, instr: Instr) -> frozenset[str] | None:
        """The devices of what an instruction reads and makes, as far as known; None = it stays outside."""

    def computes(self, instr: Instr) -> bool:
        """False for a view: a group of such alone would only copy."""

    def is_copied(self, instr: Instr) -> bool:
        """True for a constant, or a number that follows from types, which groups have copies of."""

    def type_of(self, value: int) -> Type:
        """The type of a value."""


class GroupNode:
    """An instruction, or a group, in its place in the block.

    Attributes:
        members: the instructions, in the order in which they run.
        results: what something else reads, in the order in which the group returns it (R3.18, R3.22).
        reads: what it reads and does not make; for members these are no constants, and tensors for sizes.
        devices: None = no group may have it.
        computing: how many members compute something; views do not.
        is_group: False = an instruction that has not been merged.
        count: how many operands and results it has (R3.17).
        is_number: True for what groups have copies of.
        is_read: False for a number that nothing but members read.
        name: its number in the graph of nodes.
        place: its number in the block.
    """

    def __init__(self, instr: Instr, reads: list[int], devices: frozenset[str] | None) -> None:
        self.members, self.results, self.reads = [instr], list(instr.results), reads
        self.devices = devices
        self.count = len(instr.operands) + len(instr.results)
        self.computing = 0
        self.is_group = self.is_number = False
        self.is_read = True
        self.name = self.place = 0


class DeviceGroups:
    """The groups of one block.

    Attributes:
        nodes: the block; after `run` its instructions have this order.
        chunks_moved: how many ops have moved behind chunks.
        is_cut_short: True if rounds ended before nothing changed any more.
        is_limited: True if groups were kept apart for the number of their ops.
    """

    def __init__(
        self, program: Program, block: Block, membership: Membership, options: GroupOptions | None = None
    ) -> None:
        self.program, self.block, self.membership = program, block, membership
        self.options = options or GroupOptions()
        self.copied = {r: i for i in program.body.walk() if membership.is_copied(i) for r in i.results}
        self.nodes = [self._node(instr) for instr in block.instrs]
        self.writes = any(instr.op.writes for instr in program.body.walk())
        self.chunks_moved = 0
        self.is_cut_short = self.is_limited = False

    def run(self) -> list[GroupNode]:
        """Merge until nothing changes (R3.14); returns the groups.

        A round that changes anything merges two nodes, or moves an op behind a chunk. The first
        leaves one node less, and the second happens once per op on a way to a chunk: there are fewer
        rounds than instructions then and now, and where there were more, they would never end.
        """
        rounds = 0
        while True:
            self._analyse()
            if not self._scan():
                break
            rounds += 1
            if rounds > len(self.block.instrs):
                self.is_cut_short = True
                break
        self._finish()
        return [node for node in self.nodes if node.is_group]

    # --- the block as a graph -----------------------------------------------------------------

    def _node(self, instr: Instr) -> GroupNode:
        devices = self.membership.devices(instr)
        reads = uses(instr) if devices is None else dict.fromkeys(self._sources(instr.operands))
        node = GroupNode(instr, list(reads), devices)
        node.computing = int(devices is not None and self.membership.computes(instr))
        node.is_number = any(r in self.copied for r in instr.results)
        return node

    def _sources(self, values: tuple[int, ...]) -> Iterator[int]:
        """The values that stand for operands of a group: none for constants, its sources for a number."""
        for value in values:
            maker = self.copied.get(value)
            if maker is None:
                yield value
            else:
                yield from self._sources(maker.operands)

    def _analyse(self) -> None:
        """Look at the block as it is now, each node as one."""
        nodes, outputs = self.nodes, set(self.block.outputs)
        self.block.instrs = [instr for node in nodes for instr in node.members]
        self.outputs = outputs
        self.home = {r: node for node in nodes for instr in node.members for r in instr.results}
        self.users: dict[int, list[GroupNode]] = {}
        # A number that only members read is read by nobody: these have copies.
        outside = outputs.union(*(node.reads for node in nodes if node.devices is None and not node.is_number))
        for node in reversed(nodes):
            if node.is_number:
                node.is_read = not outside.isdisjoint(node.results)
                outside.update(node.reads if node.is_read else ())
        edges: set[tuple[int, int]] = set()
        for n, node in enumerate(nodes):
            node.name = node.place = n
            for value in node.reads:
                if value in self.home:
                    edges.add((self.home[value].name, n))
                self.users.setdefault(value, []).append(node)
        edges.update(self._order())
        self.graph = Groups(len(nodes), edges)
        self.named = list(nodes)

    def _order(self) -> list[tuple[int, int]]:
        """Pairs of nodes that keep their order for what they do to memory, or else."""
        self.aliases = None
        if not self.writes:
            return chain(
                [n for n, node in enumerate(self.nodes) if node.devices is None and not is_pure(node.members[0])]
            )
        self.aliases = Aliases(self.program.body, self.program.type_of)
        names = [node.name for node in self.nodes for _ in node.members]
        pairs = ((names[a], names[b]) for a, b in self.aliases.order(self.block))
        return [pair for pair in pairs if pair[0] != pair[1]]

    def _now(self, node: GroupNode) -> GroupNode:
        """The node that has the members of a node of the last analysis."""
        return self.named[self.graph.group(node.name)]

    def _is_read_beside(self, value: int, *nodes: GroupNode) -> bool:
        """True if something that is in none of these nodes reads a value."""
        users = self.users.get(value, ())
        return value in self.outputs or any(user.is_read and self._now(user) not in nodes for user in users)

    # --- merging ------------------------------------------------------------------------------

    def _scan(self) -> bool:
        """Visit the nodes in reverse, each again as long as it changes; True if any did."""
        is_changed, at = False, len(self.nodes) - 1
        while at >= 0:
            node = self.nodes[at]
            while node.devices is not None and self._visit(node):
                is_changed = True
            at = node.place - 1
        return is_changed

    def _visit(self, node: GroupNode) -> bool:
        """Merge something with a consumer, or move a chunk in front of it (R3.16); False = nothing can be."""
        options = self.options
        for value in self._inputs(node):
            if options.chunks and self._move_chunk(node, value):
                return True
            if options.single and not node.is_group and node.computing:
                node.is_group = True
                node.results = [r for r in node.results if self._is_read_beside(r, node)]
                node.count = len(node.reads) + len(node.results)
                return True
            home = self.home.get(value)
            if home is not None and self._merge(node, self._now(home)):
                return True
            if options.horizontal and self._spreads(value):
                beside = {other.name: other for other in map(self._now, self.users.get(value, ()))}
                for other in sorted(beside.values(), key=lambda other: -other.place):
                    if self._merge(node, other):
                        return True
        return False

    def _inputs(self, node: GroupNode) -> list[int]:
        """The values that a node reads of this block, the last made first; the block's arguments are made first."""
        places = dict.fromkeys(self.block.args, -1)
        places.update((v, self._now(self.home[v]).place) for v in node.reads if v in self.home)
        return sorted((v for v in node.reads if v in places), key=lambda value: -places[value])

    def _spreads(self, value: int) -> bool:
        """True for a tensor, readers of which are merged for its sake: none that is one number on the host."""
        type_ = self.membership.type_of(value)
        return isinstance(type_, TensorType) and not (type_.rank == 0 and type_.device == HOST)

    def _merge(self, consumer: GroupNode, producer: GroupNode) -> bool:
        """Make one group of a node and one that comes before it, if that can be (R3.17)."""
        if producer is consumer or producer.devices is None or producer.place > consumer.place:
            return False
        assert consumer.devices is not None
        devices = consumer.devices | producer.devices
        if len(devices) > 1 or consumer.count + producer.count > self.options.max_values:
            return False
        if not self.graph.can_merge(consumer.name, producer.name):
            return False
        if 0 < self.options.max_ops < len(consumer.members) + len(producer.members):
            self.is_limited = True
            return False
        self._move(producer, consumer)
        returned = [r for r in consumer.results if self._is_read_beside(r, consumer, producer)]
        for instr in reversed(producer.members):
            returned += [r for r in instr.results if self._is_read_beside(r, consumer, producer)]
        inside = {r for instr in producer.members for r in instr.results}
        consumer.reads = list(dict.fromkeys([*producer.reads, *(v for v in consumer.reads if v not in inside)]))
        consumer.computing += producer.computing
        consumer.members = [*producer.members, *consumer.members]
        consumer.results, consumer.devices, consumer.is_group = returned, devices, True
        consumer.count = len(consumer.reads) + len(returned)
        self.graph.merge(consumer.name, producer.name)
        return True

    def _move(self, producer: GroupNode, consumer: GroupNode) -> None:
        """Give a group its place: what depends on the producer comes behind the consumer."""
        first, last = producer.place, consumer.place
        depending = self.graph.reach[producer.name]
        between = self.nodes[first + 1 : last]
        before = [node for node in between if not depending >> node.name & 1]
        behind = [node for node in between if depending >> node.name & 1]
        self.nodes[first : last + 1] = [*before, consumer, *behind]
        for place in range(first, len(self.nodes)):
            self.nodes[place].place = place

    # --- chunks -------------------------------------------------------------------------------

    def _move_chunk(self, consumer: GroupNode, value: int) -> bool:
        """Move an op behind the chunks of its result, which the consumer alone reads (R3.23); False = none can."""
        source = self.home.get(value)
        if source is None or source.members[0].op not in CHUNKS or self._now(source).is_group:
            return False
        split = source.members[0]
        if any(self._is_read_beside(r, consumer) for r in split.results):
            return False
        for index, operand in enumerate(split.operands):
            producer = self.home.get(operand)
            if producer is None or not self._may_follow(self._now(producer), consumer, source, operand):
                continue
            motion = ChunkMotion(self.program, self.membership.type_of, split, index, producer.members[0])
            if not motion.is_typed:
                continue
            queries = [user for user in self.users[operand] if is_size_query(user.members[0])]
            sizes = motion.sizes([n.members[0] for n in queries])
            pieces, copies = motion.apply()
            replaced = {id(producer): sizes, id(source): [pieces, *copies], **{id(n): [] for n in queries}}
            self.nodes = [
                new
                for node in self.nodes
                for new in (map(self._node, replaced[id(node)]) if id(node) in replaced else (node,))
            ]
            self.chunks_moved += 1
            self._analyse()
            return True
        return False

    def _may_follow(self, producer: GroupNode, consumer: GroupNode, source: GroupNode, value: int) -> bool:
        """True if an op can be computed chunk by chunk: where it reads the same as before, and nobody else it."""
        if producer.is_group or producer.devices is None or consumer.devices is None:
            return False
        if len(producer.devices | consumer.devices) > 1 or value in self.outputs:
            return False
        instr = producer.members[0]
        if not ChunkMotion.is_elementwise(instr):
            return False
        if any(user is not source and not is_size_query(user.members[0]) for user in self.users[value]):
            return False
        return self.aliases is None or not any(map(self.aliases.is_written, (*instr.operands, *instr.results)))

    # --- the end ------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Give groups their copies, and leave no group that nothing reads, or that views alone."""
        nodes: list[GroupNode] = []
        for node in self.nodes:
            if node.is_group:
                node.members = with_numbers(self.program, node.members, self.copied)
            nodes += map(self._node, node.members) if node.is_group and not node.computing else [node]
        read = set(self.block.outputs)
        # What control flow hands on has the type of what it is handed on as.
        handed_on = set(() if self.block is self.program.body else self.block.outputs)
        kept: list[GroupNode] = []
        for node in reversed(nodes):
            if (node.is_group or node.is_number) and read.isdisjoint(r for i in node.members for r in i.results):
                continue
            views: list[Instr] = []
            if node.is_group:
                views, node.members = split_views(self.program, node.members, read)
                self._set_results(node, read, handed_on)
            if node.results or not node.is_group:
                self._keep(node, kept, read, handed_on)
            for view in reversed(views):
                self._keep(self._node(view), kept, read, handed_on)
        self.nodes = kept[::-1]
        self.block.instrs = [instr for node in self.nodes for instr in node.members]

    def _keep(self, node: GroupNode, kept: list[GroupNode], read: set[int], handed_on: set[int]) -> None:
        kept.append(node)
        for instr in node.members:
            read |= uses(instr)
            handed_on.update(instr.operands if instr.blocks else ())

    def _set_results(self, node: GroupNode, read: set[int], handed_on: set[int]) -> None:
        """Have a group return what is read of it, which may be less than what was foreseen."""
        inside = [r for instr in reversed(node.members) for r in instr.results]
        node.results = [r for r in dict.fromkeys([*node.results, *inside]) if r in read and r in inside]
        for result in node.results:
            type_ = self.program.type_of(result)
            if isinstance(type_, TensorType) and type_.strides is not None and result not in handed_on:
                # A kernel writes in C order, however the result was laid out when it was profiled.
                self.program.types[result] = replace(type_, strides="contiguous")
