"""Reading Triton: which elements does a program load, store, mask (notes/triton.md)?

Every function is about a kernel of tests/triton/kernels.py, which the note shows. `pid` is tl.program_id(0), or the
pair of both. Elements are counted from the array's beginning; a list, a set or a range of them, in any order.
"""

from nanolm.todo import todo  # noqa: F401


def add_loads(pid, n, BLOCK):
    """add_kernel: the elements of x that program pid loads."""
    # TODO: the block's elements, less those that the mask hides. About 1 line.
    todo()
    # end


def add_masked(pid, n, BLOCK):
    """add_kernel: how many lanes of program pid's block are masked."""
    # TODO: the lanes of the block, less those that have an element. About 1 line.
    todo()
    # end


def scale_rows_stores(pid, columns, x_stride, out_stride, BLOCK):
    """scale_rows_kernel: the elements of out that program pid stores."""
    # TODO: the first elements of row pid, as many as the mask and the block let through. About 1 line.
    todo()
    # end


def sweep_loads(pid, programs, n, BLOCK):
    """sweep_kernel on a grid of `programs`: the elements of x that program pid loads."""
    # TODO: the blocks that the loop visits, and the elements of each. About 2 lines.
    todo()
    # end


def transpose_stores(pid, rows, columns, BLOCK):
    """transpose_kernel: the elements of out that the program (pid[0], pid[1]) stores."""
    # TODO: the tile of x that the program has, each element at its place in the transposed matrix. About 3 lines.
    todo()
    # end


def grouped_tile(pid, tile_rows, tile_columns, GROUP):
    """grouped_kernel on a matrix of tile_rows x tile_columns tiles: (row, column) of program pid's tile."""
    # TODO: the group of tile rows that pid falls into, its height, and the tile within it. About 3 lines.
    todo()
    # end


def causal_sum_loads(pid, n, BLOCK_Q, BLOCK_K):
    """causal_sum_kernel: the elements of v that program pid loads, in all turns of its loop."""
    # TODO: the keys up to the last query, rounded up to whole blocks, less what the mask hides. About 2 lines.
    todo()
    # end
