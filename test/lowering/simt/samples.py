"""Kernels written by hand, as text: the forms that lowering emits."""

SHARED = "#gpu.address_space<workgroup>"


def module(*functions: str) -> str:
    """A module of these ``gpu.func``."""
    return "gpu.module @kernels {\n" + "\n".join(functions) + "\n}\n"


VECTOR_ADD = """
gpu.func @add(%x: memref<?xf32>, %y: memref<?xf32>, %out: memref<?xf32>, %n: i64) kernel {
  %c4 = arith.constant 4 : index
  %size = arith.index_cast %n : i64 to index
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %bd = gpu.block_dim x
  %gd = gpu.grid_dim x
  %base = arith.muli %b, %bd : index
  %id = arith.addi %base, %t : index
  %threads = arith.muli %bd, %gd : index
  %quads = arith.divui %size, %c4 : index
  scf.for %q = %id to %quads step %threads {
    %i = arith.muli %q, %c4 : index
    %a = vector.load %x[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    %c = vector.load %y[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    %s = arith.addf %a, %c : vector<4xf32>
    vector.store %s, %out[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
  }
  %done = arith.muli %quads, %c4 : index
  %mine = arith.addi %done, %id : index
  scf.for %i = %mine to %size step %threads {
    %a = memref.load %x[%i] : memref<?xf32>
    %c = memref.load %y[%i] : memref<?xf32>
    %s = arith.addf %a, %c : f32
    memref.store %s, %out[%i] : memref<?xf32>
  }
  gpu.return
}"""


def _block_reduce(op: str, name: str, start: str) -> str:
    """Fold ``%{name}`` over 256 threads: shuffles, then one value per subgroup in ``%shared``."""
    lines = [f"%{name}0 = arith.constant {start} : f32"]
    last = name
    for k, distance in enumerate(("%i16", "%i8", "%i4", "%i2", "%i1")):
        lines += [
            f"%{name}s{k}, %{name}v{k} = gpu.shuffle xor %{last}, {distance}, %i32 : f32",
            f"%{name}a{k} = {op} %{last}, %{name}s{k} : f32",
        ]
        last = f"{name}a{k}"
    lines += [
        f"scf.if %first_lane {{ memref.store %{last}, %shared[%warp] : !shared }}",
        "gpu.barrier",
        f"%{name}t = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %{name}0) -> f32 {{",
        "  %v = memref.load %shared[%k] : !shared",
        f"  %r = {op} %acc, %v : f32",
        "  scf.yield %r : f32",
        "}",
        "gpu.barrier",
    ]
    return "\n  ".join(lines).replace("!shared", "memref<8xf32, #gpu.address_space<workgroup>>")


SOFTMAX = f"""
gpu.func @softmax(%x: memref<?xf32>, %out: memref<?xf32>, %n: i64)
    workgroup(%shared : memref<8xf32, {SHARED}>) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %i1 = arith.constant 1 : i32
  %i2 = arith.constant 2 : i32
  %i4 = arith.constant 4 : i32
  %i8 = arith.constant 8 : i32
  %i16 = arith.constant 16 : i32
  %i32 = arith.constant 32 : i32
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %size = arith.index_cast %n : i64 to index
  %row = gpu.block_id x
  %t = gpu.thread_id x
  %bd = gpu.block_dim x
  %lane = gpu.lane_id
  %warp = gpu.subgroup_id : index
  %first_lane = arith.cmpi eq, %lane, %c0 : index
  %start = arith.muli %row, %size : index
  %max = scf.for %j = %t to %size step %bd iter_args(%m = %low) -> f32 {{
    %i = arith.addi %start, %j : index
    %v = memref.load %x[%i] : memref<?xf32>
    %r = arith.maximumf %m, %v : f32
    scf.yield %r : f32
  }}
  {_block_reduce("arith.maximumf", "max", "0xFF800000")}
  %sum = scf.for %j = %t to %size step %bd iter_args(%s = %zero) -> f32 {{
    %i = arith.addi %start, %j : index
    %v = memref.load %x[%i] : memref<?xf32>
    %d = arith.subf %v, %maxt : f32
    %e = math.exp %d : f32
    %r = arith.addf %s, %e : f32
    scf.yield %r : f32
  }}
  {_block_reduce("arith.addf", "sum", "0.0")}
  scf.for %j = %t to %size step %bd {{
    %i = arith.addi %start, %j : index
    %v = memref.load %x[%i] : memref<?xf32>
    %d = arith.subf %v, %maxt : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %sumt : f32
    memref.store %r, %out[%i] : memref<?xf32>
  }}
  gpu.return
}}"""

TRANSPOSE = f"""
gpu.func @transpose(%x: memref<?xi32>, %out: memref<?xi32>, %rows: i64, %columns: i64)
    workgroup(%tile : memref<32x33xi32, {SHARED}>) kernel {{
  %c32 = arith.constant 32 : index
  %n = arith.index_cast %rows : i64 to index
  %m = arith.index_cast %columns : i64 to index
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %x0 = arith.muli %bx, %c32 : index
  %y0 = arith.muli %by, %c32 : index
  %column = arith.addi %x0, %tx : index
  %row = arith.addi %y0, %ty : index
  %in_row = arith.cmpi ult, %row, %n : index
  %in_column = arith.cmpi ult, %column, %m : index
  %inside = arith.andi %in_row, %in_column : i1
  scf.if %inside {{
    %r = arith.muli %row, %m : index
    %i = arith.addi %r, %column : index
    %v = memref.load %x[%i] : memref<?xi32>
    memref.store %v, %tile[%ty, %tx] : memref<32x33xi32, {SHARED}>
  }}
  gpu.barrier
  %to_row = arith.addi %x0, %ty : index
  %to_column = arith.addi %y0, %tx : index
  %a = arith.cmpi ult, %to_row, %m : index
  %b = arith.cmpi ult, %to_column, %n : index
  %there = arith.andi %a, %b : i1
  scf.if %there {{
    %v = memref.load %tile[%tx, %ty] : memref<32x33xi32, {SHARED}>
    %r = arith.muli %to_row, %n : index
    %i = arith.addi %r, %to_column : index
    memref.store %v, %out[%i] : memref<?xi32>
  }}
  gpu.return
}}"""

# Column sums in two steps: each block sums some rows into a row of the workspace; these add up.
COLUMN_SUM = """
gpu.func @partial(%x: memref<?xf64>, %part: memref<?xf64>, %rows: i64, %columns: i64) kernel {
  %zero = arith.constant 0.0 : f64
  %n = arith.index_cast %rows : i64 to index
  %m = arith.index_cast %columns : i64 to index
  %t = gpu.thread_id x
  %bx = gpu.block_id x
  %by = gpu.block_id y
  %bd = gpu.block_dim x
  %gy = gpu.grid_dim y
  %c = arith.muli %bx, %bd : index
  %column = arith.addi %c, %t : index
  %inside = arith.cmpi slt, %column, %m : index
  scf.if %inside {
    %sum = scf.for %row = %by to %n step %gy iter_args(%s = %zero) -> f64 {
      %r = arith.muli %row, %m : index
      %i = arith.addi %r, %column : index
      %v = memref.load %x[%i] : memref<?xf64>
      %next = arith.addf %s, %v : f64
      scf.yield %next : f64
    }
    %r = arith.muli %by, %m : index
    %i = arith.addi %r, %column : index
    memref.store %sum, %part[%i] : memref<?xf64>
  }
  gpu.return
}
gpu.func @total(%part: memref<?xf64>, %out: memref<?xf64>, %rows: i64, %columns: i64) kernel {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %rows : i64 to index
  %m = arith.index_cast %columns : i64 to index
  %column = gpu.global_id x
  %inside = arith.cmpi slt, %column, %m : index
  scf.if %inside {
    %sum = scf.for %row = %c0 to %n step %c1 iter_args(%s = %zero) -> f64 {
      %r = arith.muli %row, %m : index
      %i = arith.addi %r, %column : index
      %v = memref.load %part[%i] : memref<?xf64>
      %next = arith.addf %s, %v : f64
      scf.yield %next : f64
    }
    memref.store %sum, %out[%column] : memref<?xf64>
  }
  gpu.return
}"""

HISTOGRAM = f"""
gpu.func @histogram(%x: memref<?xi8>, %out: memref<?xi32>, %n: i64) kernel {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %size = arith.index_cast %n : i64 to index
  %t = gpu.thread_id x
  %bd = gpu.block_dim x
  %dynamic = gpu.dynamic_shared_memory : memref<?xi8, {SHARED}>
  %bins = memref.view %dynamic[%c0][] : memref<?xi8, {SHARED}> to memref<16xi32, {SHARED}>
  %owner = arith.cmpi ult, %t, %c16 : index
  scf.if %owner {{
    memref.store %zero, %bins[%t] : memref<16xi32, {SHARED}>
  }}
  gpu.barrier
  %id = gpu.global_id x
  %gd = gpu.grid_dim x
  %threads = arith.muli %bd, %gd : index
  scf.for %i = %id to %size step %threads {{
    %v = memref.load %x[%i] : memref<?xi8>
    %bin = arith.index_castui %v : i8 to index
    %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<16xi32, {SHARED}>) -> i32
  }}
  gpu.barrier
  scf.if %owner {{
    %v = memref.load %bins[%t] : memref<16xi32, {SHARED}>
    %old = memref.atomic_rmw addi %v, %out[%t] : (i32, memref<?xi32>) -> i32
  }}
  gpu.return
}}"""

COLLATZ = """
gpu.func @collatz(%x: memref<?xi64>, %steps: memref<?xi64>) kernel {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %t = gpu.thread_id x
  %start = memref.load %x[%t] : memref<?xi64>
  %last, %count = scf.while (%v = %start, %k = %zero) : (i64, i64) -> (i64, i64) {
    %more = arith.cmpi ne, %v, %one : i64
    scf.condition(%more) %v, %k : i64, i64
  } do {
  ^bb0(%v: i64, %k: i64):
    %bit = arith.remsi %v, %two : i64
    %odd = arith.cmpi eq, %bit, %one : i64
    %next = scf.if %odd -> i64 {
      %a = arith.muli %v, %three : i64
      %b = arith.addi %a, %one : i64
      scf.yield %b : i64
    } else {
      %h = arith.divsi %v, %two : i64
      scf.yield %h : i64
    }
    %j = arith.addi %k, %one : i64
    scf.yield %next, %j : i64, i64
  }
  memref.store %count, %steps[%t] : memref<?xi64>
  gpu.return
}"""


def elementwise(body: str, element: str, result: str | None = None, inputs: int = 1) -> str:
    """``out[i] = body(a, b, c …)`` with a thread per element; ``body`` defines ``%r``."""
    names = "abc"[:inputs]
    result = result or element
    parameters = "".join(f"%m{n}: memref<?x{element}>, " for n in names)
    loads = "\n".join(f"%{n} = memref.load %m{n}[%id] : memref<?x{element}>" for n in names)
    return f"""
gpu.func @each({parameters}%out: memref<?x{result}>) kernel {{
  %id = gpu.thread_id x
  {loads}
  {body}
  memref.store %r, %out[%id] : memref<?x{result}>
  gpu.return
}}"""
