"""`scripts/workbook bench`: builds attention_bench and has scripts/attention_bench.py measure with it.

`--device cuda`: scripts/compare_torch_cuda.py, which builds the ladder and measures it beside PyTorch, or `--from` a
record; tables and plots of either.
"""

import argparse
import os
import sys

from . import build_folder, processes, setup_machine
from .console import Problem, end_progress, progress, say
from .week import ROOT, find_tree, shown


def run(options):
    if options.device == "cuda":
        return _on_gpu(options.passed_on)
    tree = find_tree(options.impl)
    import attention_bench  # only this verb needs it
    arguments = ["--out", os.path.join(ROOT, "results")] + options.passed_on + ["--quick"] * options.quick
    try:
        attention_bench.parse(arguments)  # what it refuses is refused before anything is built
    except attention_bench.Problem as problem:
        raise Problem(str(problem))
    machine = setup_machine.prepare(bench=True)
    folder = build_folder.folder_for(tree, "bench-")
    with build_folder.held(folder):
        say("Building attention_bench with %s in %s" % (shown(tree), shown(folder)))
        build_folder.configure(machine, folder, tree, ["-DNANOLM_BENCH=ON", *build_folder.NO_CUDA])
        lines = []

        def on_line(line):
            lines.append(line)
            progress(line)

        build = [machine["cmake"], "--build", folder, "--target", "attention_bench", "--parallel",
                 str(build_folder.cores())]
        code = processes.stream(build, on_line)
        end_progress()
        if code != 0:
            raise Problem("attention_bench does not build:\n%s" % "\n".join(lines[-20:]), status=1)
        program = os.path.join(folder, "bin", "attention_bench")
        command = [machine["plots"], "-B", attention_bench.__file__, "--program", program]
        return processes.stream(command + arguments, env=dict(os.environ))


def _on_gpu(passed_on):
    """Measures with PyTorch, that of the Python that runs this, or shows a record; plots either."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--from", dest="source")
    parser.add_argument("--out", default=os.path.join(ROOT, "results", "compare_torch_cuda.json"))
    known, rest = parser.parse_known_args(passed_on)
    os.makedirs(os.path.join(ROOT, "results"), exist_ok=True)
    if known.source:
        say("Recorded, not measured here.")
    where = ["--from", known.source] if known.source else ["--out", known.out]
    script = os.path.join(ROOT, "scripts", "compare_torch_cuda")
    code = processes.stream([sys.executable, "-B", script + ".py"] + where + rest, env=dict(os.environ))
    if code != 0 or {"-h", "--help"} & set(rest):
        return code
    plots = setup_machine.prepare(bench=True)["plots"]
    command = [plots, "-B", script + "_plots.py", known.source or known.out, os.path.join(ROOT, "results")]
    code = processes.stream(command + ["--recorded"] * bool(known.source), env=dict(os.environ))
    if code == 0:
        say("Plots: results/compare_torch_cuda.png and .svg")
    return code
