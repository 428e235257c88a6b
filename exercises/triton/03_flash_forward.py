"""FlashAttention forward: cuda/03's twin, where a program has 64 queries of a head (notes/triton.md).

All of it is on blocks: a tile of scores is one value, and which thread has which element of it is Triton's affair.
"""

import triton
import triton.language as tl

from nanolm.todo import todo  # noqa: F401

BLOCK_Q = 64
BLOCK_K = 64
LOG2_E = tl.constexpr(1.44269504)  # log2(e)


@triton.jit
def load_tile(matrix, rows, count, HEAD_DIM: tl.constexpr, BLOCK_H: tl.constexpr):
    """Rows of a [count, HEAD_DIM] matrix; zeros behind its last row and its last column."""
    # TODO: step 1: load the tile, zeros where there is no element. Load. About 3 lines.
    todo()
    # end


@triton.jit
def keys_visited(first_q, seqlen_q, seqlen_k, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr):
    """How many keys the program visits, if need be to the end of a tile: as many as its last row sees."""
    keys = seqlen_k
    if CAUSAL:
        # TODO: step 8: the end of what the last row that exists sees. Visited. About 1 line.
        todo()
        # end
    return keys


@triton.jit
def mask_scores(S, rows, keys, seqlen_q, seqlen_k, CAUSAL: tl.constexpr):
    """S with -inf where a row does not see a key."""
    # TODO: step 2: a key is seen when it exists. Mask. About 1 line.
    todo()
    # end
    if CAUSAL:
        # TODO: step 7: hide what lies behind the diagonal. Causal. About 1 line.
        todo()
        # end
    return tl.where(seen, S, float("-inf"))


@triton.jit
def update(S, row_max, row_sum, acc, scale_log2):
    """Folds a tile of scores into m and d and rescales o; also the weights P. m is of the scores before the scale."""
    # TODO: step 3: lesson 03's update for all rows at once, by 2^x. Update. About 5 lines.
    todo()
    # end


@triton.jit
def flash_kernel(Q, K, V, O, lse, scale, seqlen_q, seqlen_k, group, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
                 BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_H: tl.constexpr):
    first_q = tl.program_id(0) * BLOCK_Q
    head = tl.program_id(1).to(tl.int64)  # of [batch * q_heads]
    kv_head = head // group
    rows = first_q + tl.arange(0, BLOCK_Q)
    Q_tile = load_tile(Q + head * seqlen_q * HEAD_DIM, rows, seqlen_q, HEAD_DIM, BLOCK_H)
    row_max = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    row_sum = tl.zeros([BLOCK_Q], tl.float32)
    acc = tl.zeros([BLOCK_Q, BLOCK_H], tl.float32)
    for first_k in range(0, keys_visited(first_q, seqlen_q, seqlen_k, CAUSAL, BLOCK_Q), BLOCK_K):
        keys = first_k + tl.arange(0, BLOCK_K)
        # TODO: step 4: S of the tile, masked; the update; P V added to acc. About 6 lines.
        todo()
        # end
    columns = tl.arange(0, BLOCK_H)
    # TODO: step 5: O and lse of the rows that exist. With step 6 all tests that are not causal. About 4 lines.
    todo()
    # end


def flash_forward(Q, K, V, O, lse, scale, causal):
    """Q and O: [batch, q_heads, seqlen_q, head_dim], K and V: [batch, kv_heads, seqlen_k, head_dim], lse: [batch,
    q_heads, seqlen_q]; all float32 and contiguous, scale > 0. Causal: row i sees j <= i + seqlen_k - seqlen_q."""
    batch, q_heads, seqlen_q, head_dim = Q.shape
    kv_heads, seqlen_k = K.shape[1], K.shape[2]
    # TODO: step 6: the grid, and how wide a tile of rows has to be. About 2 lines.
    todo()
    # end
    flash_kernel[grid](Q, K, V, O, lse, scale, seqlen_q, seqlen_k, q_heads // kv_heads, head_dim, causal, BLOCK_Q,
                       BLOCK_K, block_h)
