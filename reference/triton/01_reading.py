"""Reading Triton: which elements does a program load, store, mask (notes/triton.md)?

Every function is about a kernel of tests/triton/kernels.py, which the note shows. `pid` is tl.program_id(0), or the
pair of both. Elements are counted from the array's beginning; a list, a set or a range of them, in any order.
"""

from nanolm.todo import todo  # noqa: F401


def add_loads(pid, n, BLOCK):
    """add_kernel: the elements of x that program pid loads."""
    return range(min(pid * BLOCK, n), min((pid + 1) * BLOCK, n))


def add_masked(pid, n, BLOCK):
    """add_kernel: how many lanes of program pid's block are masked."""
    return BLOCK - max(0, min(BLOCK, n - pid * BLOCK))


def scale_rows_stores(pid, columns, x_stride, out_stride, BLOCK):
    """scale_rows_kernel: the elements of out that program pid stores."""
    return [pid * out_stride + column for column in range(min(columns, BLOCK))]


def sweep_loads(pid, programs, n, BLOCK):
    """sweep_kernel on a grid of `programs`: the elements of x that program pid loads."""
    firsts = range(pid * BLOCK, n, programs * BLOCK)
    return [element for first in firsts for element in range(first, min(first + BLOCK, n))]


def transpose_stores(pid, rows, columns, BLOCK):
    """transpose_kernel: the elements of out that the program (pid[0], pid[1]) stores."""
    tile_rows = range(pid[0] * BLOCK, min((pid[0] + 1) * BLOCK, rows))
    tile_columns = range(pid[1] * BLOCK, min((pid[1] + 1) * BLOCK, columns))
    return [column * rows + row for row in tile_rows for column in tile_columns]


def grouped_tile(pid, tile_rows, tile_columns, GROUP):
    """grouped_kernel on a matrix of tile_rows x tile_columns tiles: (row, column) of program pid's tile."""
    group, within = divmod(pid, GROUP * tile_columns)
    height = min(GROUP, tile_rows - group * GROUP)
    return group * GROUP + within % height, within // height


def causal_sum_loads(pid, n, BLOCK_Q, BLOCK_K):
    """causal_sum_kernel: the elements of v that program pid loads, in all turns of its loop."""
    visited = min(n, (pid + 1) * BLOCK_Q)
    return range(min(n, -(-visited // BLOCK_K) * BLOCK_K))
