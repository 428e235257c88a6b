"""Vector add: cuda/01's twin, where a program has a block of elements instead of a thread (notes/triton.md).

BLOCK elements of a program are 8 a thread with Triton's 4 warps: two loads of 16 bytes from each input on their way,
where addresses and count are multiples of 16.
"""

import triton
import triton.language as tl

from nanolm.todo import todo  # noqa: F401

BLOCK = 1024


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    # TODO: the program's elements, their mask, two loads and a store. About 4 lines.
    todo()
    # end


def add(x, y, out):
    """out = x + y, three arrays of float32 of one length, which may be 0."""
    # TODO: launch as many programs as cover the array. About 2 lines.
    todo()
    # end
