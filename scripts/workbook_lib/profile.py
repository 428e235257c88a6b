"""`scripts/workbook profile`: what a rung's accesses cost, counted in the emulator, beside the formulas of the lessons."""

import json
import os
import re

from . import build_folder, console, processes, setup_machine
from .console import Problem, end_progress, progress, say
from .language import translate
from .settings import tree_of
from .week import find_lesson, is_rung, shown

FLOAT = 4  # bytes
SECTOR = 32
MOST_LINES = 5  # wasteful lines that are shown
COLUMNS, WIDTHS = ("", "requested", "sectors", "x 32 bytes", "compulsory"), (18, 15, 13, 15, 15)
JSON = """\
--json prints one object and nothing else: "rung", "shape", and "calls", each with "function", "formula" (what it counts,
its bytes, and the bytes counted) and "kernels": "launches", "blocks", "threads", "barriers", "global" and "shared" arrays
with their "loads", "stores" and "atomics", and "lines" that take more sectors or passes than their bytes fill.
"""
ATTENTION = {"B": 1, "N": 1, "K": None, "S": 256, "Sq": None, "Sk": None, "H": 64, "causal": False}
ELEMENTWISE = {"n": 65536, "k": 4}
DECODE = {"B": 1, "N": 8, "K": 2, "S": 1024, "H": 128, "splits": 0}  # 0: as many as the launcher chooses


def run(options):
    console.only_errors(options.json)
    entry = find_lesson(options.rung)
    if not is_rung(entry.stem):
        raise Problem("%s is no rung of the CUDA ladder: cuda/03, say" % entry.stem)
    shape = parse_shape(options.shape, defaults_of(entry.stem))
    tree = tree_of(options.impl)
    machine = setup_machine.prepare()
    folder = build_folder.folder_for(tree)
    with build_folder.held(folder):
        say("Building %s of %s in %s" % (entry.stem, shown(tree), shown(folder)))
        build_folder.configure(machine, folder, tree, ["-DNANOLM_EMULATOR=ON"]
                               + ["-DNANOLM_CUDA=OFF"] * (not setup_machine.has_gpu()))
        program = _build(machine, folder, entry.stem.replace("/", "_") + "_emulated_profile")
        code, output = processes.capture([program] + [str(number) for number in arguments(shape)])
    if code != 0:
        raise Problem("%s does not run:\n%s" % (entry.stem, output.strip()), status=1)
    found = json.loads(output)
    found["shape"] = shape
    for call in found["calls"]:
        call["formula"] = formula(call, shape)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for call in found["calls"]:
        _print_call(entry.stem, call, shape)
    return 0


def defaults_of(stem):
    return ELEMENTWISE if "elementwise" in stem else DECODE if "decode" in stem else ATTENTION


def parse_shape(text, defaults):
    """{"S": 512, ...} of "S=512,H=64,causal"; what is not named has its default."""
    shape = dict(defaults)
    for part in filter(None, (text or "").split(",")):
        name, _, value = part.strip().partition("=")
        if name not in shape:
            raise Problem("--shape %r: %r is none of %s" % (text, name, ", ".join(defaults)))
        if defaults[name] is False and value:
            raise Problem("--shape %r: %s takes no value" % (text, name))
        if defaults[name] is not False and not value:
            raise Problem("--shape %r: %s needs a value, %s=64 say" % (text, name, name))
        if value and not re.match(r"[1-9][0-9]{0,9}$", value):
            raise Problem("--shape %r: %s must be a whole number from 1" % (text, name))
        shape[name] = int(value) if value else True
    if "Sq" in shape:
        length = shape.pop("S")
        for name in ("Sq", "Sk"):
            shape[name] = shape[name] or length
    if "N" in shape:
        shape["K"] = shape["K"] or shape["N"]
        if shape["N"] % shape["K"]:
            raise Problem("--shape %r: N=%d query heads cannot share K=%d kv heads" % (text, shape["N"], shape["K"]))
    return shape


def arguments(shape):
    """What the profile program takes."""
    names = ("n", "k") if "n" in shape else ("B", "N", "K", "Sq", "Sk", "H", "causal")
    if "splits" in shape:
        names = ("B", "N", "K", "S", "H", "splits")
    return [int(shape[name]) for name in names]


def _build(machine, folder, target):
    lines = []
    code = processes.stream([machine["cmake"], "--build", folder, "--target", target, "--parallel",
                             str(build_folder.cores())], lambda line: (lines.append(line), progress(line)))
    end_progress()
    if code != 0:
        raise Problem("%s does not build:\n%s" % (target, "\n".join(lines[-20:])), status=1)
    return os.path.join(folder, "bin", target)


def total(call, counter, of=None):
    """The counter summed over kernels and these arrays, or all but lse, of which the formulas say nothing."""
    return sum(array[way][counter] for kernel in call["kernels"] for array in kernel["global"]
               for way in ("loads", "stores", "atomics") if (array["name"] in of if of else array["name"] != "lse"))


def formula(call, shape):
    """{"says", "counts" (requested or compulsory), "bytes", "counted"}; the counters' words for the two: bytes, compulsory."""
    if "n" in shape:
        kernels = shape["k"] if call["function"] == "chain" else 1
        return {"says": "lesson 01, 8 bytes an element for each kernel", "counts": "requested",
                "bytes": 8 * shape["n"] * kernels, "counted": total(call, "bytes")}
    width = 2 if call["function"].endswith("bf16") else FLOAT
    if "splits" in shape:
        return {"says": "lesson 07, K and V once for each kv head, whatever the number of query heads and splits",
                "counts": "requested", "bytes": width * 2 * shape["B"] * shape["K"] * shape["S"] * shape["H"],
                "counted": total(call, "bytes", of=("K", "V"))}
    heads, q_rows = shape["B"] * shape["N"], shape["Sq"]
    kv_heads, head_dim = shape["B"] * shape["K"], shape["H"]
    if call["function"] == "backward":
        return _backward_formula(call, shape, heads, kv_heads)
    if any(array["name"] == "workspace" for kernel in call["kernels"] for array in kernel["global"]):
        scores = heads * q_rows * shape["Sk"]
        size = width * head_dim * (2 * heads * q_rows + 2 * kv_heads * shape["Sk"]) + FLOAT * 4 * scores
        return {"says": "lesson 01, Q, K, V and O once and the scores four times", "counts": "compulsory", "bytes": size,
                "counted": total(call, "compulsory")}
    tiles = call["kernels"][0]["blocks"] // heads
    rows = -(-q_rows // tiles)
    keys = sum(_keys_seen(shape, min((tile + 1) * rows, q_rows) - 1) for tile in range(tiles))
    size = width * head_dim * heads * (2 * q_rows + 2 * keys)
    says = ("lesson 05, Q and O once, K and V for each query tile, here %d of %d rows"
            if not shape["causal"] else
            "lesson 05, Q and O once, K and V up to the diagonal for each query tile, here %d of %d rows")
    return {"says": says % (tiles, rows), "counts": "requested", "bytes": size, "counted": total(call, "bytes")}


def _backward_formula(call, shape, heads, kv_heads):
    """Rows of head_dim: what a kernel owns is read once, what it visits once for each tile; gradients are written once."""
    blocks = {re.sub("<.*", "", kernel["kernel"]): kernel["blocks"] for kernel in call["kernels"]}
    key_tiles, query_tiles = blocks["keys_kernel"] // kv_heads, blocks["queries_kernel"] // heads
    q_rows, k_rows = shape["Sq"], shape["Sk"]
    own_keys, own_queries = -(-k_rows // key_tiles), -(-q_rows // query_tiles)
    queries = sum(q_rows - max(0, tile * own_keys - k_rows + q_rows) if shape["causal"] else q_rows
                  for tile in range(key_tiles))
    keys = sum(_keys_seen(shape, min((tile + 1) * own_queries, q_rows) - 1) for tile in range(query_tiles))
    rows = heads * (5 * q_rows + 2 * queries + 2 * keys) + kv_heads * 4 * k_rows
    return {"says": "lesson 06 in two kernels, own rows and gradients once, Q and dO for each of %d key tiles, K and V for "
                    "each of %d query tiles" % (key_tiles, query_tiles),
            "counts": "requested", "bytes": FLOAT * shape["H"] * rows,
            "counted": total(call, "bytes", of=("Q", "K", "V", "O", "dO", "dQ", "dK", "dV"))}


def _keys_seen(shape, row):
    return max(0, min(shape["Sk"], row + shape["Sk"] - shape["Sq"] + 1)) if shape["causal"] else shape["Sk"]


def _print_call(stem, call, shape):
    words = " ".join("%s=%d" % (name, value) for name, value in shape.items() if name != "causal")
    say("%s, %s: %s%s" % (stem, call["function"], words, ", causal" if shape.get("causal") else ""))
    for kernel in call["kernels"]:
        _print_kernel(kernel)
    found = call["formula"]
    say("  formula: %s" % found["says"])
    if found["counts"] == "requested":
        say("    %s bytes requested, %s counted: %s %%" % (number(found["bytes"]), number(found["counted"]), percent(found)))
    else:
        say("    %s bytes compulsory, %s counted: %s %%" % (number(found["bytes"]), number(found["counted"]), percent(found)))


def percent(found):
    """By how much what was counted is above the formula."""
    share = found["counted"] / found["bytes"] if found["bytes"] else 1
    return "%+.2f" % ((share - 1) * 100)


def number(value):
    return "{:,}".format(value).replace(",", " ")


def _print_kernel(kernel):
    blocks = kernel["blocks"]
    say("  %s: launches %s, blocks %s, threads a block %s, barriers %s" % (
        kernel["kernel"], number(kernel["launches"]), number(blocks), number(kernel["threads"] // blocks),
        number(kernel["barriers"])))
    say("    " + "".join(word.rjust(width) for word, width in zip(map(translate, COLUMNS), WIDTHS)))
    for array, way, traffic in _ways(kernel["global"]):
        cells = [number(traffic[name]) for name in ("bytes", "sectors", "compulsory")]
        cells.insert(2, number(SECTOR * traffic["sectors"]))
        say("    " + ("%-10s " % array + way).ljust(WIDTHS[0]) + "".join(map(str.rjust, cells, WIDTHS[1:])))
    for array, way, traffic in _ways(kernel["shared"]):
        say("    shared array %s, %s: %s bytes in %s passes, bank conflicts %s" % (
            array, way, number(traffic["bytes"]), number(traffic["passes"]), number(traffic["conflicts"])))
    for line in kernel["lines"][:MOST_LINES]:
        times = "%.1f" % (line["cost"] / max(1, line["least"]))
        if line["memory"] == "shared":
            say("    %s: %s, %s: %s times the passes that it needs" % (line["place"], line["array"], line["access"], times))
        else:
            say("    %s: %s, %s: %s times the sectors that it needs" % (line["place"], line["array"], line["access"], times))


def _ways(arrays):
    return [(array["name"], way, array[way]) for array in arrays for way in ("loads", "stores", "atomics")
            if array[way]["requests"]]
