"""The figures of notes/09_bench.md: percentiles, deviations, Student's t, and what the tests of lesson 09 use."""

from math import atan, ceil, pi, sqrt, ulp
from statistics import fmean, median, stdev, variance

from check_notes import given, record, says, sup
from note_statistics import Paired, Welch, critical, half_width, percentile, tail

# Why, predict
given("*Time: 1.5 h, depth.", "the week in CMakeLists.txt")
given('"The tiled kernel takes 1.9 ms" is one number', "an invented quotation")
given("The next run says 2.1", "an invented quotation")
given("Ten samples are 1, 2, ..., 10. What is p95: 9.5, 9.55 or 10?", "the question's input")
samples = [1e9 + x for x in (4, 7, 13, 16)]
given("Four samples are 10⁹ + {4, 7, 13, 16}", "the test DeviationDoesNotCancel")
given("beside 1.96? And what", "the normal distribution")

# Timing
says("One sample of 1 s among a hundred of 1 ms multiplies the mean by {}",
     {10: "ten", 11: "eleven", 12: "twelve"}[round(fmean([1000] + 99 * [1]))])
says("with a step of 0.5 µs, a kernel of 4 µs needs {} launches in a sample before the step is below 1 %",
     ceil(0.5 / (0.01 * 4)))
says("Since the beginning of 1970 some 1.8·10{} ns have passed, and doubles of that size are {:.0f} apart: 100 ns "
     "would come out as 0 or {:.0f}", sup(18), ulp(1.8e18), ulp(1.8e18))

# Percentiles
twenty = list(range(1, 21))
says("For 1, 2, ..., 20, p95 is {:.2f}; type 6 says {:.2f}, nearest rank {}", percentile(twenty, 95), 0.95 * 21,
     ceil(0.95 * 20))
given(r"h = \frac{(n - 1) \cdot p}{100}", "type 7")
enough = next(n for n in range(1, 100) if 1 - 0.95**n >= 0.95)
says("which reaches 95 % at n = {} (0.95⁵⁸ = {:.4f}, 0.95⁵⁹ = {:.4f})", enough, 0.95**58, 0.95**59)
given("with probability 1 - 0.95ⁿ", "each sample lies below p95 with probability 0.95")

# The deviation
assert 0.5 < sum(x * x for x in samples) / 4e18 < 2
says("10⁹ + {{4, 7, 13, 16}} both are about 4·10{}, a double keeps 16 digits of them, and what is left is {:.0f} where "
     "{:.0f} is right", sup(18), sum(x * x for x in samples) - 4 * fmean(samples)**2,
     sum((x - fmean(samples))**2 for x in samples))
says("right is {:.3f}. Subtract", stdev(samples))

# The interval
given("The familiar mean ± 1.96·s/√n", "the normal distribution")
given('| n | t(n - 1) | t / 1.96 | "95 %" with 1.96 holds in truth |', "heads of the next rows")
for n in (2, 5, 10, 30, 201):
    t = critical(n - 1)
    says("| {} | {:.3f} | {:.3f} | {:.1f} % |", n, t, t / 1.96, 100 * (1 - tail(1.96, n - 1)))
says("with probability {:.0f} %.", 100 * tail(critical(4), 4))
says("t divided by 1.96 against the number of samples, from {:.1f} at two down to 1. Right: the share of intervals "
     "with 1.96 that hold the true mean, from {:.0f} % at two samples towards 95 %", critical(1) / 1.96,
     100 * (1 - tail(1.96, 1)))
says("the honest interval is {:.1f} times as wide", critical(4) / 1.96)
says("the interval with 1.96 holds the mean when |T| stays within 1.96")
says("2/π · atan(1.96) = {:.3f}", 2 / pi * atan(1.96))
given("simulates it all the same: 4000 sets of five", "tests/09_bench_test.cpp")
assert (1 - 0.5) / (1 + 0.5) == 1 / 3
given("a third at r = 0.5", "the formula before it")

# Algorithm
given("0.05: low = high, high = 2 high", "1 - 0.95")
low, high, halvings = 2.0**40, 2.0**41, 0
while low < (low + high) / 2 < high:
    low, halvings = (low + high) / 2, halvings + 1
says("Doubling finds the bracket however large t is (dof = 0.1 needs 1.7·10{}) and {} halvings finish it", sup(12),
     halvings)

# Worked example
readings = [100, 130, 200, 240, 300, 350, 400, 445, 500, 535]
says("Clock readings, in ns: {} {}, {} {}, {} {}, {} {}, {} {}", *readings)
times = [stop - start for start, stop in zip(readings[::2], readings[1::2])]
says("samples {} {} {} {} {} mean {} / 5 = {}", *times, sum(times), sum(times) // 5)
squares = [(x - 40)**2 for x in times]
says("squares {} + {} + {} + {} + {} = {}", *squares, sum(squares))
says("deviation sqrt({} / 4) = {:.3f}", sum(squares), sqrt(sum(squares) / 4))
says("p50, p95 {}; h = 4 * 0.95 = {:.1f}, so 45 + {:.1f} * (50 - 45) = {:.0f}", median(times), 4 * 0.95, 4 * 0.95 - 3,
     percentile(times, 95))
says("half-width {:.3f} * {:.3f} / sqrt(5) = {:.3f} with 1.96: {:.3f}", critical(4), stdev(times), half_width(times),
     half_width(times, 1.96))
given("a (1, 100), b (2, 180), c (3, 180), d (0.5, 40), e (2, 170)", "the example's input")

# Beyond
steady = [90 + 0.1 * (7 * i % 10) for i in range(40)]
few = [100, 140, 60, 120, 80]
pooled = (4 * variance(few) + 39 * variance(steady)) / 43
says("p = {:.2f} by Welch and {:.3f} pooled", Welch(few, steady).p,
     tail((fmean(few) - fmean(steady)) / sqrt(pooled * (1 / 5 + 1 / 40)), 43))
a = [10 + 0.5 * i for i in range(8)]
b = [x - 0.2 + noise for x, noise in zip(a, (0.01, -0.01, 0.02, -0.02, 0.03, -0.03, 0, 0))]
says("which climb by 0.5 from pair to pair, a difference of {:.1f} has p = {:.2f} unpaired and {:.1f}·10⁻⁸ paired",
     Paired(a, b).difference, Welch(a, b).p, Paired(a, b).p * 1e8)
case = next(case for case in record("fast_attention_cpu.json")["forward"]
            if (case["threads"], case["seqlen"], case["causal"], case["head_dim"]) == (1, 256, True, 128))
change = Welch(*([round(1e6 * s) for s in case["ours_s"][first:first + 5]] for first in (0, 35)))
says("t = {:.2f} exceeds 1.96, but not the {:.3f} that {:.1f} degrees of freedom ask for",
     change.difference / change.error, critical(change.dof), change.dof)

# Mistakes and answers
says("steps of {:.0f} ns", ulp(1.7e18))
given("| 1.96 for t |", "the normal distribution")
given("| 1.96 was taken for t, which makes", "tests/mistakes/09_bench.edits")
given("| a table that ends in 1.96 |", "the normal distribution")
given("From 30 degrees of freedom on, 1.96 was taken for t.", "tests/mistakes/09_bench.edits")
says("n for n - 1 in s: too narrow by {:.1f} % at n = 5", 100 * (1 - sqrt(4 / 5)))
says("n for n - 1 in t: too narrow by {:.1f} % at n = 5", 100 * (1 - critical(5) / critical(4)))
given("0 below 10⁻¹⁶", "the rounding of a double near 1")
ten = list(range(1, 11))
says("{:.2f}: h = 9 · 0.95 = {:.2f}, and 9 + {:.2f} · (10 - 9). Type 6 and nearest rank say {:.0f}",
     percentile(ten, 95), 9 * 0.95, 9 * 0.95 - 8, min(10, 0.95 * 11))
assert ceil(0.95 * 10) == 10
says("{:.0f} under the root, where {:.0f} belongs", sum(x * x for x in samples) - 4 * fmean(samples)**2,
     sum((x - fmean(samples))**2 for x in samples))
says("what it does not understand. Right is {:.3f}", stdev(samples))
says("{:.3f}, more than six times as large", critical(1))
assert critical(1) / 1.96 > 6
