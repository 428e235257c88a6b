"""The figures of notes/measuring.md: records of an H200 and of a shared CPU, and lesson 09's statistics."""

from itertools import combinations, starmap
from math import ceil
from statistics import fmean, median

from check_notes import given, groups, record, says, sup
from note_statistics import Paired, Welch, critical, half_width, percentile, tail

gpu, ladder, cpu, bench = (record(name + ".json") for name in ("measuring_h200", "ladder_h200",
                                                               "fast_attention_cpu", "attention_bench_cpu"))


def only(cases, **wanted):
    return next(case for case in cases if all(case[key] == value for key, value in wanted.items()))


def bench_ms(name):
    return [
        run["real_time"] for run in bench["benchmarks"]
        if run["run_type"] == "iteration" and run["name"].startswith(name + "/iterations")
    ]


def flop(S, batch=4, heads=8, H=64):
    return 4 * S**2 * H * batch * heads


def forward_ms(causal, who, S=4096):
    return 1e3 * median(only(gpu["forward"], batch=4, seqlen=S, causal=causal)["seconds"][who])


VECTOR, TENSOR, MEMORY, L2 = 66.9e12, 989.4e12, 4.8e12, 60 * 2**20
SIZES = (256, 1024, 4096)

# Why
given("record (S = 256, causal, one core of a shared machine)", "attention_bench_cpu.json, the benchmark's name")
tiled, naive = bench_ms("tiled/256/causal"), bench_ms("naive/256/causal")
says("{:.2f} {:.2f} {:.2f} {:.2f} {:.2f} ms", *tiled)
says("Lesson 04's kernel takes {:.1f} ms on average", fmean(naive))
says("{:.2f} times faster, says the ratio of the means, and {:.2f} times, says the ratio of the medians",
     fmean(naive) / fmean(tiled),
     median(naive) / median(tiled))
says("The 95 % interval of the mean is {:.0f} ± {:.0f} ms", fmean(tiled), half_width(tiled))

# Predict
says("S grows from 256 to 4096, so the kernel has {:.0f} times the work", flop(4096) / flop(256))
given("mean ± 1.96·s/√5 is called the 95 % interval", "the question's input: the normal distribution's factor")
given("a KV cache of 32 MiB, again and again, on a GPU whose L2 holds 60 MiB", "include/nanolm/devices.h, H200")

# Time the work
clocks = {S: only(gpu["clocks"], seqlen=S) for S in SIZES}
micros = {S: {who: 1e6 * median(samples) for who, samples in clocks[S]["seconds"].items()} for S in SIZES}
waits, first = clocks[256]["seconds"]["wait"], clocks[256]["first_s"]
given("(FlashAttention in CUDA; S = 256, batch 4, 8 heads, H = 64)", "measuring_h200.json, clocks")
says("took {:.0f} µs, since it also loaded the kernel", 1e6 * first)
says("after it took {:.0f} µs on average. With the first one among them the mean is {:.0f} µs", 1e6 * fmean(waits),
     1e6 * fmean([first] + waits))
for S in SIZES:
    says("| {} | {:.1f} | {:.1f} | {:.1f} |", S, *(micros[S][who] for who in ("no wait", "wait", "events")))
LAUNCHED, EVENTS = micros[4096]["no wait"], micros[4096]["events"]
says("the last row is {:.0f} TFLOP/s, from vector units that do 66.9", flop(4096) / LAUNCHED / 1e6)
says("about {:.0f} µs too much at the top", micros[256]["wait"] - micros[256]["events"])
assert micros[4096]["wait"] < 1.01 * EVENTS
given("under 1 % at the bottom", "the line above")
caches = {S: only(gpu["caches"], seqlen=S) for S in (1024, 4096, 8192)}
cold, warm = ({S: 1e6 * median(case["seconds"][how]) for S, case in caches.items()} for how in ("flushed", "warm"))
says("takes {:.1f} µs by events, at S = 1024. A Python program that launches such steps one by one, with {:.0f} µs "
     "of its own for each, takes {:.0f} µs for each", cold[1024], micros[256]["no wait"],
     max(cold[1024], micros[256]["no wait"]))
by_events = [s for case in gpu["clocks"] for s in case["seconds"]["events"] if s < 320e-6]
assert all(abs(s / 32e-9 - round(s / 32e-9)) < 0.02 for s in by_events)
given("CUDA promises 0.5 µs of its events (those of this H200 step by 0.032 µs)", "the assertion above")
says("{} launches of a 4 µs kernel belong into one sample before the step is below 1 %", ceil(0.5 / (0.01 * 4)))
rates = [{S: caches[S]["cache_bytes"] / t[S] / 1e6 for S in caches} for t in (cold, warm)]
for S, case in caches.items():
    says("| {} | {:.0f} MiB | {:.1f} µs, {:.2f} TB/s | {:.1f} µs, {:.2f} TB/s |", S, case["cache_bytes"] / 2**20,
         cold[S], rates[0][S], warm[S], rates[1][S])

# Say what the samples hold
says("moves the mean from {:.0f} to {:.0f} ms", fmean(sorted(tiled)[:-1]), fmean(tiled))
says("the {:.2f} ms happened. p95 is the value below which 95 % of the calls lie", max(tiled))
says("the largest, {:.1f} ms here", percentile(tiled, 95))
says("with probability 1 - 0.95ⁿ, which reaches 95 % only at n = {}",
     next(n for n in range(1, 100) if 1 - 0.95**n >= 0.95))
given("the 95 % interval is $$", "a convention")
given("Many programs put 1.96 for t", "the normal distribution")
given("| n | t | t / 1.96 | mean ± 1.96·s/√n holds the mean in |", "heads of the next rows")
for n in (2, 5, 10, 30):
    t = critical(n - 1)
    says("| {} | {:.3f} | {:.2f} | {:.1f} % |", n, t, t / 1.96, 100 * (1 - tail(1.96, n - 1)))
says("t divided by 1.96 falls from {:.1f} at two samples to {:.2f} at five and towards 1. Right: an interval with 1.96 "
     "holds the true mean in {:.0f} % of cases at two samples, {:.1f} % at five, and comes near 95 %",
     critical(1) / 1.96, critical(4) / 1.96, 100 * (1 - tail(1.96, 1)), 100 * (1 - tail(1.96, 4)))
says("is {:.1f} times as wide", critical(4) / 1.96)
given("a t-distributed number stays within 1.96", "the factor of the table")
states = [1e6 * s for s in only(gpu["forward"], batch=1, seqlen=256, causal=False)["seconds"]["PyTorch, bf16"]]
given("PyTorch's bf16 attention at S = 256, µs", "measuring_h200.json, forward, batch 1")
says("the mean, {:.3f} ± {:.3f}, holds not one", fmean(states), half_width(states))
says(" ".join("{:.2f}" for _ in states), *states)
assert not any(abs(s - fmean(states)) <= half_width(states) for s in states)
assert min(states[::2]) > max(states[1::2])

# Compare
case = only(cpu["forward"], threads=2, seqlen=1024, causal=False, head_dim=128)
a, b = ([round(1e3 * s, 2) for s in case[who][15:20]] for who in ("ours_s", "peer_s"))
for i in range(5):
    says("| {} | {:.2f} | {:.2f} | {:.2f} |", 16 + i, a[i], b[i], a[i] - b[i])
given("Round 16 was slow for both", "the table's first row")
apart, together = Welch(a, b), Paired(a, b)
says("the difference of the means is {:.2f} ± {:.2f}", apart.difference, apart.half)
says("the mean of the differences is {:.2f} ± {:.2f}", together.difference, together.half)
ours = forward_ms(False, "03")
ratios = [forward_ms(False, who) / ours for who in ("02", "PyTorch, naive", "PyTorch, fp32")]
slower = ours / forward_ms(False, "PyTorch, bf16")
says("at S = 4096 on an H200 takes {:.2f} ms. It is {:.2f} times as fast as rung 02, {:.2f} times as fast as PyTorch's "
     "naive attention, {:.2f} times as fast as its fused kernel in the same format, and {:.1f} times slower", ours,
     *ratios, slower)
kept = [name.split("_")[-1] for name in bench["attention_bench"]["frontier"]["frontier"]]
says("as recorded: {}, {} and {} stay", *kept)
says("scratch memory against time by block size; {}, {} and {} stay", *kept)
blocks = [bench_ms(name) for name in bench["attention_bench"]["frontier"]["points"] if name.startswith("tiled")]
assert len(blocks) == 6 and all(abs(w.difference) < w.half for w in starmap(Welch, combinations(blocks, 2)))
assert all(w.difference > w.half for w in (Welch(bench_ms("naive/1024"), block) for block in blocks))
largest, naive = bench_ms("tiled/1024/block_256"), only(bench["attention_bench"]["cases"], name="naive/1024")
assert largest == sorted(largest)
says("size 256 rose from {:.0f} to {:.0f} ms", largest[0], largest[-1])
says("naive attention ({:.0f} ms, {:.0f} MiB)", median(bench_ms("naive/1024")), naive["scratch_bytes"] / 2**20)

# The gallery
honest = flop(4096) / EVENTS / 1e6
says("| {:.1f} µs, {:.0f} TFLOP/s | wait, or events | {:.1f} µs, {:.1f} TFLOP/s |", LAUNCHED,
     flop(4096) / LAUNCHED / 1e6, EVENTS, honest)
says("| {:.0f} µs | warm-up apart | {:.0f} µs; the first call {:.0f} µs |", 1e6 * fmean([first] + waits),
     1e6 * fmean(waits), 1e6 * first)
says("| {:.2f} TB/s | flush, or say \"warm\" | {:.2f} TB/s cold, {:.2f} TB/s warm |", rates[1][8192], rates[0][8192],
     rates[1][8192])
tensor = flop(4096) / forward_ms(False, "PyTorch, bf16") / 1e9
says("| {:.0f} TFLOP/s are {:.0f} % of {:.0f} | the dense peak | {:.0f} % of {:.0f} |", tensor,
     100 * tensor * 1e12 / (2 * TENSOR), 2 * TENSOR / 1e12, 100 * tensor * 1e12 / TENSOR, TENSOR / 1e12)
case = only(cpu["forward"], threads=1, seqlen=256, causal=True, head_dim=64)
says("| {:.2f} times faster | medians of both | {:.2f} times faster |",
     median(case["peer_s"]) / min(case["ours_s"]),
     median(case["peer_s"]) / median(case["ours_s"]))
says("| {:.3f} ± {:.3f} µs | samples in order, both states | {:.2f} µs and {:.2f} µs in turn |", fmean(states),
     half_width(states), median(states[::2]), median(states[1::2]))
says("| {:.2f} ± {:.2f} ms: no difference | the differences of the pairs | {:.2f} ± {:.2f} ms |", apart.difference,
     apart.half, together.difference, together.half)
causal, full, same = forward_ms(True, "03", 16384), forward_ms(False, "PyTorch, fp32",
                                                               16384), forward_ms(True, "PyTorch, fp32", 16384)
says("| {:.2f} against {:.2f} ms: {:.2f} times faster | the same mask | {:.2f} against {:.2f} ms: {:.2f} times |",
     causal, full, full / causal, causal, same, same / causal)
fused = forward_ms(False, "PyTorch, fp32")
says("| {:.2f} against {:.2f} ms: {:.1f} times | the same format | {:.2f} against {:.2f} ms: {:.2f} times |",
     forward_ms(False, "PyTorch, bf16"), ours, slower, fused, ours, fused / ours)
moved, copied = 2**31, median(ladder["copy"]["samples_ms"])
says("| TB as 2{} bytes | {} bytes in {:.3f} ms: {:.2f} \"TB/s\" | 10{} bytes | {:.2f} TB/s |", sup(40), groups(moved),
     copied, moved / copied * 1e3 / 2**40, sup(12), moved / copied / 1e9)
says("| {:.2f} times as fast as rung 02 | what people use | {:.2f} times as fast", ratios[0], ratios[2])
says("| {:.1f} µs by events | the program's time, launches included | at least {:.0f} µs", cold[1024],
     micros[256]["no wait"])

# The exercise, and the answers
given("66.9 TFLOP/s in fp32, 989 in bf16 (dense), 4.8 TB/s, an L2 of 60 MiB", "include/nanolm/devices.h, H200")
given("fp32, batch 4, 8 heads, H = 64, no mask, on an H200. Medians of eleven", "measuring_h200.json, clocks")
says("| S | {} | {} | {} |", *SIZES)
says("| µs | {:.1f} | {:.1f} | {:.1f} |", *(micros[S]["no wait"] for S in SIZES))
says("sixteen times the length costs {:.1f} times the time", LAUNCHED / micros[256]["no wait"])

given("2²⁶ fp32 numbers", "ladder_h200.json, elementwise: half of the bytes of one kernel, over 4")
chain, one = (only(ladder["elementwise"], kernels=kernels, operations=16) for kernels in ("chain", "fused"))
size = 2 * 4 * 2**26
for name, case, bytes_ in (("sixteen kernels", chain, 16 * size), ("one kernel", one, size)):
    says("| " + name + " | {} | {:.4f} ± {:.4f} |", groups(bytes_), fmean(case["samples_ms"]),
         max(half_width(case["samples_ms"]), 0.00005001))  # rounded up: no interval is 0
    assert 0.99 < bytes_ / case["bytes"] < 1.01
speed_up = fmean(chain["samples_ms"]) / fmean(one["samples_ms"])
says("Fused, the chain runs {:.1f} times faster", speed_up)

case = only(cpu["forward"], threads=1, seqlen=256, causal=True, head_dim=128)
before, after = ([round(1e6 * s) for s in case["ours_s"][first:first + 5]] for first in (0, 35))
for name, row in (("before", before), ("after", after)):
    says("| " + name + " | {} | {} | {} | {} | {} | {:.0f} |", *row, fmean(row))
change = Welch(before, after)
says("saves {:.0f} µs, {:.1f} %. The standard error of the difference is {:.0f} µs, and {:.0f} exceeds "
     "1.96 · {:.0f} = {:.0f}", change.difference, 100 * change.difference / fmean(before), change.error,
     change.difference, change.error, 1.96 * change.error)

given("fp32, batch 4, 8 heads, H = 64, on an H200, with 4S²H", "measuring_h200.json, forward")
times = {S: forward_ms(True, "03", S) for S in (4096, 8192, 16384)}
claimed = {S: flop(S) / t / 1e9 for S, t in times.items()}
for S in times:
    says("| {} | {:.3f} | {:.1f} |", S, times[S], claimed[S])

for S, case in caches.items():
    says("| {} | {} | {:.2f} | {:.2f} |", S, groups(case["cache_bytes"]), warm[S], rates[1][S])
given("Decode of one sequence in bf16 on an H200", "measuring_h200.json, caches")
says("draws {:.2f} TB/s from the H200's memory, {:.0f} % of what it has", rates[1][8192],
     100 * rates[1][8192] * 1e12 / MEMORY)

case = only(cpu["forward"], threads=1, seqlen=256, causal=False, head_dim=64)
kernel, library = ([round(1e3 * s, 2) for s in case[who][89:95]] for who in ("ours_s", "peer_s"))
says("| round | {} | {} | {} | {} | {} | {} | mean |", *range(90, 96))
for name, row in (("a", kernel), ("b", library)):
    says("| " + name + " |" + " {:.2f} |" * 7, *row, fmean(row))
drifting, pairs = Welch(kernel, library), Paired(kernel, library)
says("The difference is {:.2f} ± {:.2f} ms by Welch's test, p = {:.2f}", drifting.difference, drifting.half, drifting.p)

says("By {:.1f}, from {:.1f} to {:.1f} µs", LAUNCHED / micros[256]["no wait"], micros[256]["no wait"], LAUNCHED)
says("The kernel's own time grows {:.0f} times, from {:.1f} to {:.1f} µs; less than {:.0f} times, since at S = 256 it "
     "has too little work for {} SMs", EVENTS / micros[256]["events"], micros[256]["events"], EVENTS,
     flop(4096) / flop(256), ladder["sms"])
says("In {:.1f} of them. With {:.3f} for 1.96, in 95", 100 * (1 - tail(1.96, 4)), critical(4))
says("± {:.2f} against ± {:.2f} ms in the example", together.half, apart.half)

says("At S = 4096 the FLOP are 4 · 4096² · 64 · 4 · 8 = {}. In {:.1f} µs that would be {:.0f} TFLOP/s ({:.0f} before "
     "the rounding), {:.0f} times the fp32 peak", groups(flop(4096)), LAUNCHED, flop(4096) / round(LAUNCHED, 1) / 1e6,
     flop(4096) / LAUNCHED / 1e6,
     flop(4096) / round(LAUNCHED, 1) * 1e6 / VECTOR)
says("Even S = 1024 would be {:.0f} TFLOP/s", flop(1024) / round(micros[1024]["no wait"], 1) / 1e6)
says("by events S = 4096 takes {:.1f} µs", EVENTS)
assert all(flop(S) / micros[S]["no wait"] * 1e6 > VECTOR for S in (1024, 4096))

says("though {:.1f} looks too good for 16", speed_up)
both = [bytes_ / fmean(case["samples_ms"]) / 1e9 for case, bytes_ in ((chain, 16 * size), (one, size))]
says("are {:.2f} TB/s for the chain and {:.2f} TB/s fused, both under 4.8; each tensor has {} MiB", *both,
     size // 2 // 2**20)
given("make 16 of the ratio", "16 kernels, 1 kernel")
assert max(both) * 1e12 < MEMORY and size > L2

says("Welch's degrees of freedom are {:.1f}, so t is {:.3f}, and the half-width is {:.3f} · {:.0f} = {:.0f} µs",
     change.dof, critical(change.dof), critical(change.dof), change.error, change.half)
says("from {:.0f} to {:.0f} µs, holds 0; p = {:.3f}", change.difference - change.half, change.difference + change.half,
     change.p)
given("samples 1 to 5 and 36 to 40 of one kernel", "fast_attention_cpu.json: S = 256, causal, H = 128, one thread")
assert change.half > change.difference > 1.96 * change.error

says("{:.1f} is above the roof of {:.1f}", claimed[16384], VECTOR / 1e12)
says("The rates are {:.1f}, {:.1f} and {:.1f} TFLOP/s", *(claimed[S] / 2 for S in times))
assert claimed[16384] * 1e12 > VECTOR > claimed[8192] * 1e12

given("32 MiB stay in an L2 of 60 MiB", "include/nanolm/devices.h, H200")
more, longer = 2**24, round(warm[8192], 2) - round(warm[4096], 2)
says("from the second row to the third {} more bytes take {:.2f} µs more, {:.2f} TB/s, above the memory's {:.1f}",
     groups(more), longer, more / longer / 1e6, MEMORY / 1e12)
says("the last row takes {:.2f} µs: {:.2f} TB/s", cold[8192], rates[0][8192])
assert more / longer * 1e6 > MEMORY and caches[8192]["cache_bytes"] < L2

says("by {:.2f} ± {:.2f} ms, p = {:.3f}", -pairs.difference, pairs.half, pairs.p)
says("an interval from {:.2f} to {:.2f} around", drifting.difference - drifting.half,
     drifting.difference + drifting.half)
given("cudaEventElapsedTime (0.5 µs)", "NVIDIA, CUDA Runtime API")
assert all(x < y for x, y in zip(kernel, library)) and drifting.half > -drifting.difference
