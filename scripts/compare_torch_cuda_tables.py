"""The tables of scripts/compare_torch_cuda.py, of a record."""

import statistics

from note_tables import table
from side_by_side import Problem, milliseconds, ratio_text


def ms(case, who):
    return milliseconds(case["seconds"][who]) if who in case["seconds"] else ""


def ratio(case, ours, who):
    return ratio_text(case["seconds"][ours], case["seconds"][who]) if who in case["seconds"] else ""


def mebibytes(count):
    return "%.1f" % (count / 2 ** 20) if count is not None else ""


def yes(case):
    return "yes" if case["causal"] else "no"


def roof(record, *whats):
    """The best of them, a second."""
    case = record["roofs"]
    return max(case["work"][what] / statistics.median(case["seconds"][what]) for what in whats)


def share(rate, most, what):
    if rate > 1.02 * most:
        raise Problem("%s is above its roof, %g of %g: one of the two is wrong" % (what, rate, most))
    return "%.0f %%" % (100 * rate / most)


def memory_row(record, case):
    """S; by formula: S x S of all heads, the output, their quotient; what each held; the largest difference."""
    output = 4 * case["batch"] * record["heads"] * case["seqlen"] * record["head_dim"]
    return [str(case["seqlen"]), mebibytes(output // record["head_dim"] * case["seqlen"]), mebibytes(output),
            "%d" % (case["seqlen"] // record["head_dim"])] + [
                mebibytes(case["bytes"].get(who)) for who in ("02", "03", "PyTorch, naive", "PyTorch, fp32")] + [
                    "%.1e" % case["errors"]["03"]]


def forward(record):
    flop = roof(record, "fp32 matmul")
    rows = [[str(case["batch"]), str(case["seqlen"]), yes(case)]
            + [ms(case, who) for who in ("02", "03", "PyTorch, naive", "PyTorch, fp32", "PyTorch, bf16")]
            + [ratio(case, "03", who) for who in ("02", "PyTorch, fp32")]
            + [share((2 if case["causal"] else 4) * case["batch"] * record["heads"] * case["seqlen"] ** 2
                     * record["head_dim"] / statistics.median(case["seconds"]["03"]), flop, "rung 03")]
            for case in record["forward"]]
    return table(["batch", "S", "causal", "02, ms", "03, ms", "PyTorch naive, ms", "PyTorch fp32, ms", "PyTorch bf16, ms",
                  "02 / 03", "PyTorch fp32 / 03", "03 of the fp32 matmul"], rows)


def memory(record):
    rows = [memory_row(record, case) for case in record["forward"] if case["batch"] == 4 and not case["causal"]]
    return table(["S", "S × S", "O", "S/H", "02 held", "03 held", "PyTorch naive held", "PyTorch fp32 held", "difference"],
                 rows)


def chain(record):
    copy = roof(record, "copy")
    rows = [[str(case["operations"])] + [ms(case, who) for who in ("chain", "fused", "PyTorch", "PyTorch, compiled")]
            + [ratio(case, "fused", who) for who in ("chain", "PyTorch, compiled")]
            + [share(8.0 * record["elements"] / statistics.median(case["seconds"]["fused"]), copy, "rung 01")]
            for case in record["chain"]]
    return table(["k", "01, k kernels", "01, one kernel", "PyTorch, k calls", "PyTorch, compiled", "k kernels / one",
                  "compiled / 01, one kernel", "01, one kernel, of the copy"], rows)


def cache_rate(case, who):
    return case["cache_bytes"] / statistics.median(case["seconds"][who])


def decode(record):
    read, peers = roof(record, "read", "read, largest"), ["cuDNN", "FlashAttention-2"]
    rows = [[str(case["batch"]), str(case["seqlen"])] + ["%.2f" % (cache_rate(case, who) / 1e12) for who in ["04"] + peers]
            + [ratio(case, "04", who) for who in peers] + [share(cache_rate(case, "04"), read, "rung 04")]
            for case in record["decode"]]
    return table(["batch", "S", "04", "cuDNN", "FlashAttention-2", "cuDNN / 04", "FlashAttention-2 / 04",
                  "04 of reading"], rows)


def clocks(record):
    rows = [[str(case["seqlen"]), ms(case, "no wait"), ms(case, "wait"), ms(case, "events"),
             "%.1f" % (1e3 * case["first_s"])] for case in record["clocks"]]
    return table(["S", "host, no sync()", "host, sync()", "events", "the first call, sync()"], rows)


def caches(record):
    rows = [[str(case["seqlen"]), mebibytes(case["cache_bytes"])]
            + ["%.2f" % (cache_rate(case, how) / 1e12) for how in ("flushed", "warm")] for case in record["caches"]]
    return table(["S", "cache, MiB", "flushed", "warm"], rows)


def backward(record):
    rows = [[str(case["seqlen"]), yes(case), ms(case, "05"), ms(case, "PyTorch, fp32"),
             ratio(case, "05", "PyTorch, fp32")] for case in record["backward"]]
    return table(["S", "causal", "05, ms", "PyTorch, ms", "PyTorch / 05"], rows)


def report(record):
    return "\n\n".join([
        "%s (driver, highest SM clock: %s), PyTorch %s, cuDNN %s. A ratio above 1: ours is faster."
        % (record["device"], record["driver_and_highest_clock"], record["torch"], record["cudnn"])
        + " Measured in the same run: %.2f TB/s copied (read and written), %.2f TB/s read, %.1f TFLOP/s of PyTorch's fp32 "
        "matrix product, %.0f of its bf16 product."
        % (roof(record, "copy") / 1e12, roof(record, "read", "read, largest") / 1e12, roof(record, "fp32 matmul") / 1e12,
           roof(record, "bf16 matmul") / 1e12),
        "**Rung 03 by three clocks, batch 4, ms.** Without a wait the host's clock times the launch and nothing else. The "
        "first call of the process also loads the kernel.", clocks(record),
        "**Decode of one sequence, TB/s: with a flushed L2 and a warm one.** The second is no rate of the memory.",
        caches(record),
        "**A chain of k multiply-adds of 2²⁶ floats, ms.** Ours as k kernels and as one, PyTorch's as k calls and by "
        "torch.compile.", chain(record),
        "**Forward, %d heads, H = %d, fp32 but for the last column of times.**" % (record["heads"], record["head_dim"]),
        forward(record),
        "**Memory beyond Q, K and V of batch 4, MiB.** By formula: one S × S matrix a head, O, and their quotient S/H. Held: "
        "by ours the workspace, by PyTorch what it holds at most, its output included. The last column is the largest "
        "difference between rung 03's O and PyTorch's in fp32.", memory(record),
        "**Decode, bf16, 32 query heads, 8 kv heads, H = 128, TB/s of the cache.**", decode(record),
        "**Backward, fp32, batch 4, H = %d.**" % record["head_dim"], backward(record)]) + "\n"
