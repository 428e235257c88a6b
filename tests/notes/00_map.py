import re

from check_notes import ROOT, given, says

week = {stem: (tier, float(hours)) for stem, tier, hours in re.findall(
    r'"(\w+) +(core|depth) +([\d.]+) ', (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))}
core = sum(hours for tier, hours in week.values() if tier == "core")
says("Core is {:g} hours, core and depth together {:g}", core, sum(hours for _, hours in week.values()))
given("| 1 of the 2.5 of 01 |", source="gpu_model.md's own line of time, and the week's table")
for stem, (tier, hours) in week.items():
    says("(%s.md) | {} {:g} |" % ("cuda/ladder" if stem == "cuda" else stem), tier, hours)

given("the course's week 13, this one", source="the programme")
given("*Week 22* is a later week", source="the programme")

for source in ("Dao et al. 2022, \"FlashAttention\", sections 2.2 and 3.1, theorem 2; Dao 2023, \"FlashAttention-2\", "
               "section 3.1 |", "Shah et al. 2024", "Dao et al. 2022, appendix B; Dao 2023, section 3.1.2",
               "Katharopoulos et al. 2020", "Student 1908; Welch 1947; Hyndman & Fan 1996"):
    given(source, source="the papers: years and sections")
given("[10 Fast attention]", source="a lesson's number")
given("| 10 | Goto", source="a lesson's number")
