from check_notes import ROOT, given


def terms(page, fold):
    rows = [line.strip("| ").split(" | ") for line in (ROOT / page).read_text(encoding="utf-8").splitlines()
            if line.startswith("| ")]
    return [fold(row[0]) for row in rows[1:]], {tuple(row[:2]) for row in rows[1:]}


english, pairs = terms("notes/glossary.md", lambda term: term.lower().replace("'", ""))
russian, pairs_ru = terms("notes/ru/glossary.md", lambda term: ("а" > term.lower()[0] or term.lower()[0] > "я",
                                                                 term.lower().replace("ё", "е")))
if english != sorted(english) or russian != sorted(russian):
    raise ValueError("a glossary is not in alphabetical order")
if pairs != {(e, r) for r, e in pairs_ru}:
    raise ValueError("the glossaries have different terms: %s" % (pairs ^ {(e, r) for r, e in pairs_ru}))

given("in a stated part of repetitions, 95 % in the notes", source="the usual choice")
given("the value below which 95 % of the samples lie", source="p95")
given("fewer bits, 8 or 4 in place of 16", source="the programme")
given("The piece of 32 bytes", source="CUDA's memory transactions; notes/cuda/counters.md")
given("with 11 bits of mantissa", source="NVIDIA's documentation of TF32, the leading bit included")
given("| 32 threads that execute one instruction together", source="the programme")
given("[lesson 10]", source="a lesson's number")
