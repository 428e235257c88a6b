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
    columns = tl.arange(0, BLOCK_H)
    mask = (rows[:, None] < count) & (columns[None, :] < HEAD_DIM)
    return tl.load(matrix + rows[:, None].to(tl.int64) * HEAD_DIM + columns[None, :], mask=mask, other=0.0)


@triton.jit
def keys_visited(first_q, seqlen_q, seqlen_k, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr):
    """How many keys the program visits, if need be to the end of a tile: as many as its last row sees."""
    keys = seqlen_k
    if CAUSAL:
        keys = tl.minimum(seqlen_k, tl.minimum(first_q + BLOCK_Q, seqlen_q) + seqlen_k - seqlen_q)
    return keys


@triton.jit
def mask_scores(S, rows, keys, seqlen_q, seqlen_k, CAUSAL: tl.constexpr):
    """S with -inf where a row does not see a key."""
    seen = keys[None, :] < seqlen_k
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None] + seqlen_k - seqlen_q)
    return tl.where(seen, S, float("-inf"))


@triton.jit
def update(S, row_max, row_sum, acc, scale_log2):
    """Folds a tile of scores into m and d and rescales o; also the weights P. m is of the scores before the scale."""
    new_max = tl.maximum(row_max, tl.max(S, axis=1))
    shift = tl.where(new_max == float("-inf"), 0.0, new_max)  # -inf - (-inf) is NaN
    rescale = tl.exp2((row_max - shift) * scale_log2)
    P = tl.exp2((S - shift[:, None]) * scale_log2)
    return new_max, row_sum * rescale + tl.sum(P, axis=1), acc * rescale[:, None], P


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
        K_tile = load_tile(K + kv_head * seqlen_k * HEAD_DIM, keys, seqlen_k, HEAD_DIM, BLOCK_H)
        S = tl.dot(Q_tile, tl.trans(K_tile), input_precision="ieee")  # else tensor cores round Q and K to TF32
        S = mask_scores(S, rows, keys, seqlen_q, seqlen_k, CAUSAL)
        row_max, row_sum, acc, P = update(S, row_max, row_sum, acc, scale * LOG2_E)
        V_tile = load_tile(V + kv_head * seqlen_k * HEAD_DIM, keys, seqlen_k, HEAD_DIM, BLOCK_H)
        acc = tl.dot(P, V_tile, acc, input_precision="ieee")
    columns = tl.arange(0, BLOCK_H)
    acc = acc / tl.where(row_sum == 0.0, 1.0, row_sum)[:, None]  # a row without keys: 0 and -inf
    O_tile = O + (head * seqlen_q + rows[:, None]) * HEAD_DIM + columns[None, :]
    tl.store(O_tile, acc, mask=(rows[:, None] < seqlen_q) & (columns[None, :] < HEAD_DIM))
    tl.store(lse + head * seqlen_q + rows, row_max * scale + tl.log(row_sum), mask=rows < seqlen_q)


def flash_forward(Q, K, V, O, lse, scale, causal):
    """Q and O: [batch, q_heads, seqlen_q, head_dim], K and V: [batch, kv_heads, seqlen_k, head_dim], lse: [batch,
    q_heads, seqlen_q]; all float32 and contiguous, scale > 0. Causal: row i sees j <= i + seqlen_k - seqlen_q."""
    batch, q_heads, seqlen_q, head_dim = Q.shape
    kv_heads, seqlen_k = K.shape[1], K.shape[2]
    grid = (triton.cdiv(seqlen_q, BLOCK_Q), batch * q_heads)
    block_h = max(16, triton.next_power_of_2(head_dim))  # tl.arange takes powers of 2, and tl.dot at least 16
    flash_kernel[grid](Q, K, V, O, lse, scale, seqlen_q, seqlen_k, q_heads // kv_heads, head_dim, causal, BLOCK_Q,
                       BLOCK_K, block_h)
