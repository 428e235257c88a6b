"""The figures of notes/03_online_softmax.md."""

from math import exp, log

from check_notes import given, says

given("*Time: 2.25 h, core.", source="the week in CMakeLists.txt")
given("Every score of a row is -1000", source="chosen")
given("one in blocks of 16", source="chosen")
first = exp(1 - 3) + exp(3 - 3)  # scores 1, 3, of which 3 is the maximum
says("After the first block d is {:.5f}.", first)
says("In fp32 `exp` overflows above {:.1f} and is 0 below {:.1f}", log((2 - 2**-23) * 2**127), log(2**-150))
given("a later block of scores around -200", source="chosen")

factor = exp(3 - 5)
d = first * factor + exp(2 - 5) + exp(5 - 5)
o_first = 10 * exp(1 - 3) + 20 * exp(3 - 3)
o = o_first * factor + 30 * exp(2 - 5) + 40 * exp(5 - 5)
given("Scores 1, 3, 2, 5 with values 10, 20, 30, 40", source="chosen")
says("| 1, 3 | 3 | {:.5f} | {:.5f} | e^-2 + 1; 10 e^-2 + 20 |", first, o_first)
says("| 2, 5 | 5 | {:.5f} | {:.5f} | factor e^(3-5) = {:.5f};", d, o, factor)
says("{:.5f} · {:.5f} + e^-3 + 1; {:.5f} · {:.5f} + 30 e^-3 + 40 |", first, factor, o_first, factor)
says("Result: {:.5f} / {:.5f} = {:.5f}. Log-sum-exp: 5 + ln {:.5f} = {:.5f}.", o, d, o / d, d, 5 + log(d))

says("with the {} bits of half precision", 10 + 1)

says("gets e^(3-5) = {:.5f}.", factor)
says("d becomes {:.5f} · {:.5f} = {:.5f} before", first, factor, first * factor)
assert exp(-1000) < 2**-150
given("Each term is e^-1000, which is 0 in fp32", source="the question")
given("There d is 2.17843 in place of 1.00356", source="the output above it")
given("a fixed 1e-3 too weak a one", source="chosen")
