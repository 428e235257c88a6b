"""`scripts/workbook bench`: builds attention_bench and has scripts/attention_bench.py measure with it.

`--device cuda`: scripts/compare_torch_cuda.py, which builds the ladder and measures it beside PyTorch, or `--from` a record.
"""

import os
import sys

from . import build_folder, processes, setup_machine
from .console import Problem, end_progress, progress, say
from .week import ROOT, find_tree, shown


def run(options):
    if options.device == "cuda":
        # PyTorch is not the workbook's: it is that of the Python that runs this.
        script = os.path.join(ROOT, "scripts", "compare_torch_cuda.py")
        if any(argument.startswith("--from") for argument in options.passed_on):
            say("Recorded, not measured here.")
        return processes.stream([sys.executable, "-B", script] + options.passed_on, env=dict(os.environ))
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
