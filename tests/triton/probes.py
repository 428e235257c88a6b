"""Kernels that call one helper of a student's flash kernel each: a step is tested before the next is written."""

import triton
import triton.language as tl


def kernels(answers):
    """The probes, by name. Triton resolves a kernel's global names in its own file: the helpers are put there."""
    helpers = ("load_tile", "keys_visited", "mask_scores", "update")
    globals().update({name: getattr(answers, name) for name in helpers})
    return dict(zip(helpers, (load_probe, visited_probe, mask_probe, update_probe)))


@triton.jit
def load_probe(matrix, out, first, count, HEAD_DIM: tl.constexpr, ROWS: tl.constexpr, BLOCK_H: tl.constexpr):
    tile = load_tile(matrix, first + tl.arange(0, ROWS), count, HEAD_DIM, BLOCK_H)
    tl.store(out + tl.arange(0, ROWS)[:, None] * BLOCK_H + tl.arange(0, BLOCK_H)[None, :], tile)


@triton.jit
def visited_probe(out, first_q, seqlen_q, seqlen_k, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr):
    tl.store(out, keys_visited(first_q, seqlen_q, seqlen_k, CAUSAL, BLOCK_Q) + 0.0)


@triton.jit
def mask_probe(S, out, first_q, first_k, seqlen_q, seqlen_k, CAUSAL: tl.constexpr, ROWS: tl.constexpr,
               KEYS: tl.constexpr):
    tile = tl.arange(0, ROWS)[:, None] * KEYS + tl.arange(0, KEYS)[None, :]
    rows, keys = first_q + tl.arange(0, ROWS), first_k + tl.arange(0, KEYS)
    tl.store(out + tile, mask_scores(tl.load(S + tile), rows, keys, seqlen_q, seqlen_k, CAUSAL))


@triton.jit
def update_probe(S, row_max, row_sum, acc, P, scale_log2, ROWS: tl.constexpr, KEYS: tl.constexpr,
                 BLOCK_H: tl.constexpr):
    row = tl.arange(0, ROWS)
    tile = row[:, None] * KEYS + tl.arange(0, KEYS)[None, :]
    columns = row[:, None] * BLOCK_H + tl.arange(0, BLOCK_H)[None, :]
    new_max, new_sum, new_acc, weights = update(tl.load(S + tile), tl.load(row_max + row), tl.load(row_sum + row),
                                                tl.load(acc + columns), scale_log2)
    tl.store(row_max + row, new_max)
    tl.store(row_sum + row, new_sum)
    tl.store(acc + columns, new_acc)
    tl.store(P + tile, weights)
