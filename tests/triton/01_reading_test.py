"""Which elements a program touches: the stand-in runs the kernel, and its accesses are compared with the answer."""

import itertools
import os

import stand_in
from runner import HERE, check, test

KERNELS = os.path.join(HERE, "kernels.py")


def elements(kind, array, kernel, arrays, arguments, grid, pid):
    """The elements of an array that a program loads or stores, and how many lanes of these accesses are masked."""
    found = [element for access in stand_in.accesses(KERNELS, kernel, arrays, arguments, grid, pid)
             if (access.kind, access.array) == (kind, array) for element in access.elements]
    return sorted(element for element in found if element is not None), found.count(None)


def compare(answer, right, call):
    """The same elements, each once, in any order."""
    try:
        mine = sorted(answer)
    except TypeError:
        check(False, "%s: an answer is a list, a set or a range of elements, not %r" % (call, answer))
    if mine == right:
        return
    missing, extra = sorted(set(right) - set(mine)), sorted(set(mine) - set(right))
    twice = sorted({element for element in mine if mine.count(element) > 1})
    says = ["with %s" % call,
            "the program touches %d elements, from %d to %d" % (len(right), right[0], right[-1]) if right else
            "the program touches no element"]
    says += ["%d elements are missing, %r first" % (len(missing), missing[0])] if missing else []
    says += ["%d elements are too many, %r first" % (len(extra), extra[0])] if extra else []
    says += ["element %r is there %d times" % (twice[0], mine.count(twice[0]))] if twice else []
    check(False, "\n".join(says[1:] + says[:1]))


def call(function, *arguments):
    return "%s(%s)" % (function, ", ".join(map(repr, arguments)))


@test("StandIn.GivenRecordsWhatTheNoteShows")
def _(_answers):
    arguments = {"n": 10, "BLOCK": 4}
    load_x, load_y, store = stand_in.accesses(KERNELS, "add_kernel", ["x", "y", "out"], arguments, [3], [2])
    check(load_x == ("load", "x", [8, 9, None, None]), "load of x: %r" % (load_x,))
    check((load_y.array, store.kind, store.array) == ("y", "store", "out"), "then y, then out")
    check(load_x.elements == load_y.elements == store.elements, "all three under one mask")


def add(n, BLOCK, pid):
    return elements("load", "x", "add_kernel", ["x", "y", "out"], {"n": n, "BLOCK": BLOCK}, [pid + 1], [pid])


ADD_CASES = [(n, BLOCK, pid) for n, BLOCK in ((8, 4), (10, 4), (3, 4), (97, 32), (1000, 256))
             for pid in range(-(-n // BLOCK))]


@test("Add.WholeBlocks")
def _(answers):
    for n, BLOCK, pid in ((8, 4, 0), (8, 4, 1), (96, 32, 2)):
        compare(answers.add_loads(pid, n, BLOCK), add(n, BLOCK, pid)[0], call("add_loads", pid, n, BLOCK))


@test("Add.TheLastProgramIsCutByTheMask")
def _(answers):
    for n, BLOCK, pid in ADD_CASES:
        compare(answers.add_loads(pid, n, BLOCK), add(n, BLOCK, pid)[0], call("add_loads", pid, n, BLOCK))


@test("Add.AProgramBehindTheEndLoadsNothing")
def _(answers):
    for n, BLOCK, pid in ((8, 4, 2), (10, 4, 3), (10, 4, 7), (1, 16, 1)):
        compare(answers.add_loads(pid, n, BLOCK), add(n, BLOCK, pid)[0], call("add_loads", pid, n, BLOCK))


@test("AddMasked.LanesWithoutAnElement")
def _(answers):
    for n, BLOCK, pid in ADD_CASES + [(8, 4, 2), (10, 4, 7)]:
        right, mine = add(n, BLOCK, pid)[1], answers.add_masked(pid, n, BLOCK)
        check(mine == right, "%s is %r; of %d lanes %d are masked"
              % (call("add_masked", pid, n, BLOCK), mine, BLOCK, right))


@test("ScaleRows.StoresARowOfItsOwnStride")
def _(answers):
    for columns, x_stride, out_stride, BLOCK, pid in ((5, 5, 5, 8, 0), (5, 7, 11, 8, 3), (16, 20, 17, 16, 2),
                                                      (1, 3, 2, 4, 9), (12, 12, 12, 8, 2)):
        arguments = {"columns": columns, "x_stride": x_stride, "out_stride": out_stride, "BLOCK": BLOCK}
        right = elements("store", "out", "scale_rows_kernel", ["x", "out"], arguments, [pid + 1], [pid])[0]
        compare(answers.scale_rows_stores(pid, *arguments.values()), right,
                call("scale_rows_stores", pid, *arguments.values()))


@test("Sweep.EveryBlockOfAProgram")
def _(answers):
    for programs, n, BLOCK in ((2, 100, 16), (3, 97, 8), (4, 16, 8), (1, 33, 32), (5, 640, 64)):
        for pid in range(programs):
            right = elements("load", "x", "sweep_kernel", ["x", "out"], {"n": n, "BLOCK": BLOCK}, [programs], [pid])[0]
            compare(answers.sweep_loads(pid, programs, n, BLOCK), right, call("sweep_loads", pid, programs, n, BLOCK))


@test("Transpose.StoresATileOfTheOtherMatrix")
def _(answers):
    for rows, columns, BLOCK in ((8, 8, 4), (6, 10, 4), (3, 17, 8), (5, 2, 8)):
        arguments = {"rows": rows, "columns": columns, "BLOCK": BLOCK}
        grid = (-(-rows // BLOCK), -(-columns // BLOCK))
        for pid in itertools.product(*map(range, grid)):
            right = elements("store", "out", "transpose_kernel", ["x", "out"], arguments, grid, pid)[0]
            compare(answers.transpose_stores(pid, *arguments.values()), right,
                    call("transpose_stores", pid, *arguments.values()))


@test("Grouped.TheTileOfEveryProgram")
def _(answers):
    BLOCK = 2
    for tile_rows, tile_columns, GROUP in ((4, 3, 2), (5, 3, 2), (7, 2, 3), (2, 5, 4), (3, 3, 1)):
        arguments = {"rows": tile_rows * BLOCK, "columns": tile_columns * BLOCK, "GROUP": GROUP, "BLOCK": BLOCK}
        for pid in range(tile_rows * tile_columns):
            grid = [tile_rows * tile_columns]
            stored = elements("store", "out", "grouped_kernel", ["x", "out"], arguments, grid, [pid])[0]
            row, column = divmod(stored[0], tile_columns * BLOCK)
            right, mine = (row // BLOCK, column // BLOCK), answers.grouped_tile(pid, tile_rows, tile_columns, GROUP)
            try:
                mine = tuple(mine)
            except TypeError:
                pass
            check(mine == right, "%s is %r; the program stores tile %r"
                  % (call("grouped_tile", pid, tile_rows, tile_columns, GROUP), mine, right))


@test("CausalSum.NoTileBehindTheDiagonal")
def _(answers):
    for n, BLOCK_Q, BLOCK_K in ((32, 8, 8), (30, 8, 4), (30, 4, 8), (17, 16, 16), (50, 8, 32), (5, 8, 4)):
        for pid in range(-(-n // BLOCK_Q)):
            arguments = {"n": n, "BLOCK_Q": BLOCK_Q, "BLOCK_K": BLOCK_K}
            right = elements("load", "v", "causal_sum_kernel", ["v", "out"], arguments, [pid + 1], [pid])[0]
            compare(answers.causal_sum_loads(pid, *arguments.values()), right,
                    call("causal_sum_loads", pid, *arguments.values()))
