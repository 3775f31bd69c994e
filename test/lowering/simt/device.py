"""Ops of the device: ids, memory, atomics, barriers and shuffles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir
from mlir.dialects.arith import AtomicRMWKind

from .elementwise import FUNCTIONS
from .faults import SimtError
from .grid import SUBGROUP, Active, coordinates
from .machine import Machine, gather, scatter
from .memory import WIDEST, Access, Buffer, MemRef, row_major
from .program import Instruction
from .types import DYNAMIC, constant_of, dtype_of, shape_of
from .vectors import combiner

_AXES = {f"#gpu<dim {name}>": axis for axis, name in enumerate("xyz")}


def _axis(each: Instruction) -> int:
    return _AXES[str(each.op.attributes["dimension"])]


def _identity(compute: Callable[[Machine, Instruction], np.ndarray | int]):
    """The action of an op that tells threads who they are."""

    def act(machine: Machine, each: Instruction, active: Active) -> None:
        machine.set(each.results[0], np.asarray(compute(machine, each)).reshape(-1))

    return act


def _global_id(machine: Machine, each: Instruction) -> np.ndarray:
    wave, axis = machine.wave, _axis(each)
    return wave.block_id(axis) * wave.block[axis] + wave.thread_id(axis)


def _access(machine: Machine, each: Instruction, active: Active, first: int, type_: ir.Type) -> tuple[Access, Active]:
    """The access whose operands are, from ``first`` on, a memref and indices.

    A read of one address by all threads, of memory that no thread writes, is made once.
    """
    ref = machine.memrefs[each.operands[first]]
    slots = each.operands[first + 1 :][: len(ref.shape)]
    for slot in slots:
        machine.refuse_poison(slot, active, "an address")
    shape = shape_of(type_)
    if len(shape) > 1:
        raise SimtError(f"{each.site}: accesses of {type_} are not emulated")
    count = shape[0] if shape else 0
    constant = ref.buffer.space == "global" and ref.buffer.ledger is None
    if constant and all(machine.values[slot].shape[0] == 1 for slot in slots):
        active = active.first()
    indices = tuple(machine.row(slot, active) for slot in slots)
    return Access(active, ref, indices, count, _alignment(each.op, count, ref)), active


def _alignment(op: ir.Operation, count: int, ref: MemRef) -> int:
    if "alignment" in op.attributes:
        return ir.IntegerAttr(op.attributes["alignment"]).value
    size = max(count, 1) * ref.dtype.itemsize
    return min(WIDEST, size & -size)


def _load(machine: Machine, each: Instruction, active: Active) -> None:
    access, readers = _access(machine, each, active, 0, each.op.results[0].type)
    rows = access.load()
    machine.set(each.results[0], rows if readers is not active else scatter(rows, active))


def _store(machine: Machine, each: Instruction, active: Active) -> None:
    machine.refuse_poison(each.operands[0], active, "the value stored")
    access, _ = _access(machine, each, active, 1, each.op.operands[0].type)
    access.store(machine.row(each.operands[0], active))


def _masked(machine: Machine, each: Instruction, active: Active):
    """Per element of a masked access: its place, the threads that make it, and the access."""
    ref = machine.memrefs[each.operands[0]]
    *outer, last = each.operands[1 : 1 + len(ref.shape)]
    mask_slot = each.operands[1 + len(ref.shape)]
    for slot in (*outer, last, mask_slot):
        machine.refuse_poison(slot, active, "a masked access")
    mask = machine.values[mask_slot]
    for place in range(mask.shape[1]):
        some = Active(active.wave, active.mask & mask[:, place])
        some.site = active.site
        if some.lanes.size:
            indices = [machine.row(slot, some) for slot in outer]
            indices.append(machine.row(last, some) + place)
            yield place, some, Access(some, ref, tuple(indices))


def _masked_load(machine: Machine, each: Instruction, active: Active) -> None:
    other = each.operands[-1]
    threads = active.wave.threads
    shape = (threads, *machine.values[other].shape[1:])
    value = np.broadcast_to(machine.values[other], shape).copy()
    poison = machine.poison.get(other)
    poison = None if poison is None else np.broadcast_to(poison, shape).copy()
    for place, some, access in _masked(machine, each, active):
        value[some.lanes, place] = access.load()
        if poison is not None:
            poison[some.lanes, place] = False
    machine.set(each.results[0], value, poison)


def _masked_store(machine: Machine, each: Instruction, active: Active) -> None:
    slot = each.operands[-1]
    poison = machine.poison.get(slot)
    for place, some, access in _masked(machine, each, active):
        if poison is not None and (bad := gather(poison, some)[:, place]).any():
            some.fault("poison", "the value stored depends on an undefined value", bad)
        access.store(machine.row(slot, some)[:, place])


_ATOMICS = {
    AtomicRMWKind[kind].value: FUNCTIONS[f"arith.{name}"]
    for kind, name in (
        ("addf", "addf"),
        ("addi", "addi"),
        ("mulf", "mulf"),
        ("muli", "muli"),
        ("andi", "andi"),
        ("ori", "ori"),
        ("xori", "xori"),
        ("maximumf", "maximumf"),
        ("maxnumf", "maxnumf"),
        ("maxs", "maxsi"),
        ("maxu", "maxui"),
        ("minimumf", "minimumf"),
        ("minnumf", "minnumf"),
        ("mins", "minsi"),
        ("minu", "minui"),
    )
} | {AtomicRMWKind.assign.value: lambda old, new: new}


def _atomic(machine: Machine, each: Instruction, active: Active) -> None:
    """One thread after the other, in the order of their numbers."""
    machine.refuse_poison(each.operands[0], active, "the value stored")
    access, _ = _access(machine, each, active, 1, each.op.operands[0].type)
    function = _ATOMICS[ir.IntegerAttr(each.op.attributes["kind"]).value]
    old = access.update(function, machine.row(each.operands[0], active))
    machine.set(each.results[0], scatter(old, active))


def _barrier(machine: Machine, each: Instruction, active: Active) -> None:
    """All threads of a block, or none; a divergent barrier hangs the device."""
    wave = active.wave
    arrived = active.mask.reshape(wave.count, wave.block_threads)
    counts = arrived.sum(axis=1)
    partial = (counts > 0) & (counts < wave.block_threads)
    if partial.any():
        block = int(np.argmax(partial))
        missing = block * wave.block_threads + int(np.argmin(arrived[block]))
        _, thread = coordinates(wave, wave.first * wave.block_threads + missing)
        what = f"{counts[block]} of {wave.block_threads} threads arrive, not thread {thread}"
        active.fault("barrier", what, active.blocks_in_wave == block)
    for passed in wave.barriers.values():
        passed += counts > 0


def _shuffle(machine: Machine, each: Instruction, active: Active) -> None:
    """The first ``width`` lanes of a subgroup exchange values.

    `convert-gpu-to-nvvm` names just these lanes in the instruction's mask, so each of them must
    arrive and no other may.  A lane outside of ``[0, width)`` as a source gives an undefined value.
    """
    wave = active.wave
    for slot in each.operands[1:]:
        machine.refuse_poison(slot, active, "a shuffle's offset or width")
    value, offset, width = (np.asarray(machine.values[slot]) for slot in each.operands)
    lane = wave.in_block % SUBGROUP
    width = np.broadcast_to(width, wave.threads)
    _check_arrivals(active, lane, width)
    mode = str(each.op.attributes["mode"]).removeprefix("#gpu<shuffle_mode ").removesuffix(">")
    source = {
        "xor": lambda: lane ^ offset,
        "up": lambda: lane - offset,
        "down": lambda: lane + offset,
        "idx": lambda: np.broadcast_to(offset, lane.shape),
    }[mode]()
    valid = (source >= 0) & (source < width)
    place = np.where(valid, np.arange(wave.threads) - lane + source, np.arange(wave.threads))
    shape = (wave.threads, *value.shape[1:])
    moved = np.broadcast_to(value, shape)[place]
    poison = np.zeros(shape, bool)
    before = machine.poison.get(each.operands[0])
    if before is not None:
        poison |= np.broadcast_to(before, shape)[place]
    poison[~valid] = True
    machine.set(each.results[0], moved, poison if poison[active.mask].any() else None)
    machine.set(each.results[1], valid)


def _check_arrivals(active: Active, lane: np.ndarray, width: np.ndarray) -> None:
    if active.all and active.wave.block_threads % SUBGROUP == 0 and (width == SUBGROUP).all():
        return
    mine, widths = lane[active.lanes], width[active.lanes]
    if (bad := mine >= widths).any():
        place = int(np.argmax(bad))
        what = f"lane {mine[place]} runs a shuffle of the first {widths[place]} lanes"
        active.fault("shuffle", what, bad)
    wave = active.wave
    subgroups = -(-wave.block_threads // SUBGROUP)
    number = active.blocks_in_wave * subgroups + wave.in_block[active.lanes] // SUBGROUP
    arrived = np.bincount(number, minlength=wave.count * subgroups)[number]
    if (bad := arrived < widths).any():
        place = int(np.argmax(bad))
        there = set(mine[number == number[place]].tolist())
        missing = next(k for k in range(SUBGROUP) if k not in there)
        what = f"a shuffle of the first {widths[place]} lanes reads lane {missing}, inactive here"
        active.fault("shuffle", what, bad)


def _subgroup_reduce(machine: Machine, each: Instruction, active: Active) -> None:
    """All lanes of a subgroup, in the order of a butterfly."""
    wave = active.wave
    machine.refuse_poison(each.operands[0], active, "a reduction over a subgroup")
    if "cluster_size" in each.op.attributes:
        raise SimtError(f"{each.site}: clusters are not emulated")
    lane = wave.in_block % SUBGROUP
    _check_arrivals(active, lane, np.broadcast_to(np.int64(SUBGROUP), wave.threads))
    value = np.broadcast_to(machine.values[each.operands[0]], wave.threads)
    kind = str(each.op.attributes["op"]).removeprefix("#gpu<all_reduce_op ").removesuffix(">")
    combine = combiner(kind, str(each.op.results[0].type)[0] in "fb")
    here = np.arange(wave.threads)
    for distance in (1, 2, 4, 8, 16):
        partner = np.minimum(here - lane + (lane ^ distance), wave.threads - 1)
        value = combine(value, value[partner])
    machine.set(each.results[0], value)


def _alloca(machine: Machine, each: Instruction, active: Active) -> None:
    type_ = each.op.results[0].type
    memory = local_memory(machine.wave, type_, "private", "private memory")
    machine.memrefs[each.results[0]] = memory


def local_memory(wave, type_: ir.Type, space: str, name: str) -> MemRef:
    """Memory of this static memref type for every block or every thread of a wave."""
    if not type_.has_static_shape:
        raise SimtError(f"{name} of dynamic size is not emulated")
    dtype, shape = dtype_of(type_), tuple(type_.shape)
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    owners = wave.count if space == "workgroup" else wave.threads
    buffer = Buffer(name, space, size, owners, unit=dtype.itemsize)
    if space == "workgroup":
        buffer.track_races()
    return MemRef(buffer, dtype, shape, row_major(shape))


def _get_global(machine: Machine, each: Instruction, active: Active) -> None:
    """A table of the module."""
    name = ir.FlatSymbolRefAttr(each.op.attributes["name"]).value
    module = each.op.parent
    while module.operation.name != "gpu.module":
        module = module.operation.parent
    for op in module.operation.regions[0].blocks[0].operations:
        symbols = op.operation.attributes
        if "sym_name" in symbols and ir.StringAttr(symbols["sym_name"]).value == name:
            table = constant_of(symbols["initial_value"])[0]
    size = table.size * table.itemsize
    buffer = Buffer(f"the table @{name}", "global", size, unit=table.itemsize)
    buffer.fill(0, table)
    buffer.wholly_defined, buffer.writable = True, False
    ref = MemRef(buffer, table.dtype, table.shape, row_major(table.shape))
    machine.memrefs[each.results[0]] = ref


def _dynamic_shared(machine: Machine, each: Instruction, active: Active) -> None:
    if machine.shared is None:
        raise SimtError(f"{each.site}: the launch asks for no dynamic workgroup memory")
    ref = MemRef(machine.shared, np.dtype(np.int8), (machine.shared.slot_bytes,))
    machine.memrefs[each.results[0]] = ref


def _view(machine: Machine, each: Instruction, active: Active) -> None:
    """A byte offset all threads agree on; sizes after it."""
    numbers = [_agreed(machine, slot, each) for slot in each.operands[1:]]
    sizes = iter(numbers[1:])
    type_ = each.op.results[0].type
    shape = tuple(next(sizes) if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank))
    source = machine.memrefs[each.operands[0]]
    machine.memrefs[each.results[0]] = source.viewed(numbers[0], dtype_of(type_), shape)


def _subview(machine: Machine, each: Instruction, active: Active) -> None:
    source = machine.memrefs[each.operands[0]]
    given = iter(each.operands[1:])
    lists = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        static = each.op.attributes[name]
        lists.append([_agreed(machine, next(given), each) if n == DYNAMIC else n for n in static])
    offsets, sizes, steps = lists
    type_ = each.op.results[0].type
    if type_.rank != len(sizes):
        raise SimtError(f"{each.site}: subviews of lower rank are not emulated")
    offset = sum(o * s for o, s in zip(offsets, source.strides, strict=True))
    strides = tuple(n * s for n, s in zip(steps, source.strides, strict=True))
    ref = MemRef(source.buffer, source.dtype, tuple(sizes), strides, source.offset + offset * source.dtype.itemsize)
    machine.memrefs[each.results[0]] = ref


def _agreed(machine: Machine, slot: int, each: Instruction) -> int:
    values = np.unique(machine.values[slot])
    if values.size != 1:
        raise SimtError(f"{each.site}: views that differ between threads are not emulated")
    return int(values[0])


def _cast(machine: Machine, each: Instruction, active: Active) -> None:
    machine.memrefs[each.results[0]] = machine.memrefs[each.operands[0]]


ACTIONS = {
    "gpu.thread_id": _identity(lambda m, e: m.wave.thread_id(_axis(e))),
    "gpu.block_id": _identity(lambda m, e: m.wave.block_id(_axis(e))),
    "gpu.block_dim": _identity(lambda m, e: m.wave.block[_axis(e)]),
    "gpu.grid_dim": _identity(lambda m, e: m.wave.grid[_axis(e)]),
    "gpu.global_id": _identity(_global_id),
    "gpu.lane_id": _identity(lambda m, e: m.wave.in_block % SUBGROUP),
    "gpu.subgroup_id": _identity(lambda m, e: m.wave.in_block // SUBGROUP),
    "gpu.subgroup_size": _identity(lambda m, e: SUBGROUP),
    "gpu.num_subgroups": _identity(lambda m, e: -(-m.wave.block_threads // SUBGROUP)),
    "gpu.barrier": _barrier,
    "gpu.shuffle": _shuffle,
    "gpu.subgroup_reduce": _subgroup_reduce,
    "gpu.dynamic_shared_memory": _dynamic_shared,
    "memref.get_global": _get_global,
    "memref.load": _load,
    "memref.store": _store,
    "memref.atomic_rmw": _atomic,
    "memref.alloca": _alloca,
    "memref.view": _view,
    "memref.subview": _subview,
    "memref.cast": _cast,
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
}
"""Actions of the ops that depend on who runs them, or on memory."""
