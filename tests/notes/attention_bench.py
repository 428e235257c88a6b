"""The figures of notes/attention_bench.md, from the recorded run and lesson 01's bounds."""

from itertools import combinations, starmap
from statistics import fmean, median

from check_notes import given, record, says
from note_statistics import Welch, half_width

bench, peers = record("attention_bench_cpu.json"), record("peers_h200.json")
cases = {case["name"]: case for case in bench["attention_bench"]["cases"]}
SIZES, N, H, MIB = (256, 512, 1024, 2048, 4096), 8, 64, 2**20


def ms(name):
    return [run["real_time"] for run in bench["benchmarks"]
            if run["run_type"] == "iteration" and run["name"].startswith(name + "/iterations")]


def ratio(S, mask=""):
    return median(ms("naive/%d%s" % (S, mask))) / median(ms("tiled/%d%s" % (S, mask)))


given("N = 8 heads, H = 64, fp32, S = 256 to 4096", "attention_bench_cpu.json, settings")
given("at S = 4096 with 8 heads in fp32", "the settings")
given("Do you expect 1e-3, 1e-7 or 0 in fp32?", "the question's choices")
given("half-width of the 95 % interval", "a convention")
given("a context of 131072", "attention_bench_cpu.json, growth")
given("by block size at S = 1024; the frontier steps from 8 over 16 to 256", "attention_bench_cpu.json, frontier")

naive, tiled = ms("naive/256/causal"), ms("tiled/256/causal")
says("one disturbed sample of five decides: {:.2f} instead of {:.2f} at S = 256, causal", fmean(naive) / fmean(tiled),
     ratio(256, "/causal"))
says("a case with ± {:.0f} on {:.0f} ms is quoted", half_width(tiled), median(tiled))
says("a difference of {:.0e} is called", cases["tiled/4096"]["largest_difference"])

growth = {kernel: [median(ms("%s/%d" % (kernel, S))) for S in SIZES] for kernel in ("naive", "tiled")}
naive, tiled = ((times[-1] / times[0])**0.25 for times in growth.values())
says("the naive kernel's median grew by {:.2f} a doubling, the tiled one's by {:.2f}", naive, tiled)
given("From S = 256 to 4096", "the settings")
steps = [after / before for times in growth.values() for before, after in zip(times, times[1:])]
says("scatter more, from {:.2f} to {:.2f}", min(steps), max(steps))
says("at S = 512 the interval is ± {:.0f} on {:.0f} ms", half_width(ms("tiled/512")), median(ms("tiled/512")))

host = bench["attention_bench"]["host"]
P, W = host["vector_flop_per_s"], host["bytes_per_s"]


def intensity(S, bytes_):
    return S * H / (bytes_ * (S + H))


says("P / W = {:.1f} / {:.1f} = {:.2f} FLOP a byte", P / 1e9, W / 1e9, P / W)
says("SH / (4 (S + H)) = {:.1f} at S = 4096", intensity(4096, 4))
assert intensity(256, 4) > P / W
ratios = [ratio(S) for S in SIZES]
says("Measured are {:.2f} to {:.2f} without a mask", min(ratios), max(ratios))
h100, h200 = 989e12 / 3.35e12, 989e12 / 4.8e12
rows = {(row["type"], row["seqlen"]): row["ratio"] for row in peers["naive_against_sdpa"]["rows"]}
says("SH / (2 (S + H)) = {:.1f}, far below {:.0f}, and the tiled kernel {:.0f}, so the bound gives {:.0f} / {:.1f} = "
     "{:.1f}", intensity(4096, 2), h100, 4096 / 2, h100, intensity(4096, 2), h100 / intensity(4096, 2))
says("PyTorch's two on an H200 in bf16 differ by {:.1f}, too, where the bound says {:.1f}", rows["bfloat16", 4096],
     h200 / intensity(4096, 2))
says("In fp32 without tensor cores the same two differ by {:.1f}", rows["float32", 4096])

tiles = 4096 // 64
visited, causal = tiles * (tiles + 1) // 2, ratio(4096, "/causal")
says("with blocks of 64 at S = 4096, {} of {} tiles, {:.3f}", visited, tiles**2, visited / tiles**2)
says("rise by {:.2f} / {:.3f} = {:.2f}. Measured: from {:.2f} to {:.2f}, by {:.2f}", 3 / 4, visited / tiles**2,
     3 / 4 / (visited / tiles**2), ratio(4096), causal, causal / ratio(4096))

says("4096² · 8 · 4 bytes = {:.0f} MiB", 4096**2 * N * 4 / MIB)
scratch = {cases["tiled/%d" % S]["scratch_bytes"] for S in SIZES}
assert len(scratch) == 1
says("{:.1f} KiB at every length, for tiles of 64", scratch.pop() / 1024)
says("S / H: {:.0f} at S = 4096 and H = 64", 4096 / H)
says("{:.0f} MiB being {:.0f} times the {:.0f} MiB of O", cases["naive/4096"]["scratch_bytes"] / MIB, 4096 / H,
     4096 * H * N * 4 / MIB)

differences = [case["largest_difference"] for name, case in cases.items() if case["largest_difference"] and
               name.split("/block")[0] == name]
says("About 1e-7 times a few: {:.1e} to {:.1e} in the record", min(differences), max(differences))
given("not 1e-3, since nothing was left out. The programme says 5e-7", "the programme of week 13")

blocks = {case["block"] or 64: ms(name) for name, case in cases.items() if name in
          bench["attention_bench"]["frontier"]["points"] and name.startswith("tiled")}
says("falls from {:.0f} ms at 8 to {:.0f} ms at 16 and then hardly moves: {:.0f} ms at 64, {:.0f} ms at 256",
     *(median(blocks[size]) for size in (8, 16, 64, 256)))
says("The naive kernel takes {:.0f} ms. But the samples of 256 lie between {:.0f} and {:.0f} ms",
     median(ms("naive/1024")), min(blocks[256]), max(blocks[256]))
assert all(abs(w.difference) < w.half for w in starmap(Welch, combinations(blocks.values(), 2)))
given('"this record cannot tell, not even 8 from 16"', "the assertion above")
given("And at S = 4096 in bf16 on an H100?", "chosen")
