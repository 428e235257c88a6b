"""What one run of attention_bench recorded: its JSON, by case."""

import math


class Bench:
    """What one run of attention_bench measured. Times are in milliseconds."""

    def __init__(self, record, recorded_in=None):
        own = record["attention_bench"]
        self.context = record["context"]
        self.recorded_in = recorded_in
        self.settings = own["settings"]
        self.host = own["host"]
        self.statistics = own["statistics"]
        self.frontier, self.growth, self.roofline = own["frontier"], own["growth"], own["roofline"]
        self.predictions = own["predictions"]
        self.cases = {case["name"]: dict(case, samples=[], busy=[]) for case in own["cases"]}
        for run in record["benchmarks"]:
            case = self.cases.get(run["run_name"].split("/iterations:")[0])
            if case is None or run.get("error_occurred"):
                continue
            if run["run_type"] == "iteration":
                case["samples"].append(run["real_time"])
                case["busy"].append((run["cpu_time"], run["real_time"]))
            else:
                case[run["aggregate_name"]] = run["real_time"]
        # Lesson 09's median. Where that is not written, Google Benchmark's; of one sample, the sample.
        for case in self.cases.values():
            case["ms"] = known(case.get("p50", case.get("median", case["samples"][0] if case["samples"] else None)))
            case["half_width"] = known(case.get("half_width_95"))

    def rows(self):
        """(seqlen, causal, naive, tiled) of the main table."""
        pairs = {}
        for case in self.cases.values():
            if not case["for_frontier"]:
                pairs.setdefault((case["seqlen"], case["causal"]), {})[case["kernel"]] = case
        empty = {"problem": None, "samples": [], "ms": None, "half_width": None, "saving": None,
                 "largest_difference": None, "scratch_bytes": None, "scratch_formula_bytes": None,
                 "output_is_finite": True}
        return [(seqlen, causal, pair.get("naive", empty), pair.get("tiled", empty))
                for (seqlen, causal), pair in sorted(pairs.items())]

    def fast_rows(self):
        """(seqlen, causal, naive, tiled, fast) where lesson 10's kernel was measured; older records have none."""
        cases = {(case["kernel"], case["seqlen"], case["causal"]): case for case in self.cases.values()
                 if not case["for_frontier"]}
        return [(seqlen, causal, naive, tiled, cases["fast", seqlen, causal])
                for seqlen, causal, naive, tiled in self.rows() if ("fast", seqlen, causal) in cases]

    def device_names(self):
        return [] if needs(self.roofline) else [row["name"] for row in self.roofline]

    def device_row(self, name):
        return next((row for row in self.roofline if row["name"] == name), None) if self.device_names() else None

    def prediction(self, seqlen):
        return next((p for p in self.predictions if p["seqlen"] == seqlen), {}) if not needs(self.predictions) else {}

    def core_share(self):
        """Processor time over wall time: well below 1 when other programs wanted the core."""
        pairs = [pair for case in self.cases.values() for pair in case["busy"]]
        wall = sum(real for _, real in pairs)
        return sum(cpu for cpu, _ in pairs) / wall if wall else None


def known(value):
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def needs(section):
    """'needs 01_roofline' where a lesson that a part stands on is not written."""
    return "needs %s" % section["needs"] if isinstance(section, dict) and "needs" in section else None
