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
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 2^31 elements are 8 GB: a GPU has them
    mask = offsets < count
    total = tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, total, mask=mask)


def add(x, y, out):
    """out = x + y, three arrays of float32 of one length, which may be 0."""
    count = x.numel()
    add_kernel[(triton.cdiv(count, BLOCK),)](x, y, out, count, BLOCK)  # of no programs Triton launches nothing
