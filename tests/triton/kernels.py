"""The kernels that exercises/triton/01_reading.py asks about. Triton compiles them as they stand; the tests run them
with tests/triton/stand_in.py, which computes nothing but the addresses right."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)


@triton.jit
def scale_rows_kernel(x, out, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * x_stride + column, mask=mask, other=0.0)
    tl.store(out + row * out_stride + column, 2.0 * values, mask=mask)


@triton.jit
def sweep_kernel(x, out, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for first in range(tl.program_id(0) * BLOCK, n, step):
        offsets = first + tl.arange(0, BLOCK)
        values = tl.load(x + offsets, mask=offsets < n)
        tl.store(out + offsets, 2.0 * values, mask=offsets < n)


@triton.jit
def transpose_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    values = tl.load(x + row * columns + column, mask=mask)
    tl.store(out + column * rows + row, values, mask=mask)


@triton.jit
def grouped_kernel(x, out, rows, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    tile_rows = tl.cdiv(rows, BLOCK)
    programs_of_group = GROUP * tl.cdiv(columns, BLOCK)
    first_tile_row = tl.program_id(0) // programs_of_group * GROUP
    height = tl.minimum(GROUP, tile_rows - first_tile_row)
    within = tl.program_id(0) % programs_of_group
    row = (first_tile_row + within % height) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = within // height * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    tl.store(out + row * columns + column, 2.0 * tl.load(x + row * columns + column, mask=mask), mask=mask)


@triton.jit
def causal_sum_kernel(v, out, n, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    query = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    total = tl.zeros([BLOCK_Q], tl.float32)
    for first in range(0, tl.minimum(n, (tl.program_id(0) + 1) * BLOCK_Q), BLOCK_K):
        key = first + tl.arange(0, BLOCK_K)
        values = tl.load(v + key, mask=key < n, other=0.0)
        total += tl.sum(tl.where(key[None, :] <= query[:, None], values[None, :], 0.0), axis=1)
    tl.store(out + query, total, mask=query < n)
