"""The sum of two arrays, of any length; every lane outside them masked."""

import arrays
from runner import check, test

TYPES = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "count": "i32"}


def run(answers, counts):
    place = arrays.prepare(answers)
    import numpy
    random = numpy.random.default_rng(2)
    for count in counts(answers.BLOCK):
        x, y = random.standard_normal((2, count)).astype(numpy.float32)
        out = place.array("out", numpy.full(count, arrays.POISON, numpy.float32))
        answers.add(place.array("x", x), place.array("y", y), out)
        # One rounded addition: float32's own is the only right answer.
        arrays.all_close("out of %d elements" % count, place.numpy(out), (x + y).astype(numpy.float64), 0.0)


@test("Add.WholeBlocks")
def _(answers):
    run(answers, lambda block: (block, 3 * block))


@test("Add.AnyCount")
def _(answers):
    run(answers, lambda block: (1, 3, block - 1, block + 1, 2 * block + 7, 5077))


@test("Add.NothingToDo")
def _(answers):
    run(answers, lambda _: (0,))


@test("Launch.TheFewestProgramsThatCoverTheArray")
def _(answers):
    place = arrays.prepare(answers)
    import numpy
    launched, kernel, block = [], answers.add_kernel, answers.BLOCK

    class Counting:
        def __getitem__(self, grid):
            launched.append(grid)
            return kernel[grid]

    answers.names["add_kernel"] = Counting()
    for count, programs in ((1, 1), (block, 1), (block + 1, 2), (4 * block, 4)):
        data = [place.array(name, numpy.ones(count, numpy.float32)) for name in ("x", "y", "out")]
        answers.add(*data)
        grid = launched[-1] if launched else ()
        check(tuple(grid)[:1] == (programs,), "%d elements in blocks of %d: the grid is %r, not (%d,)"
              % (count, block, grid, programs))


@test("Compiles.ForAGpu")
def _(answers):
    arrays.compile_for_gpu(answers, "add_kernel", TYPES, {"BLOCK": 1024})


@test("Compiles.ToLoadsOf16Bytes")
def _(answers):
    """As the note says: with a count that is a multiple of 16 four neighbours have one mask, and are loaded at once."""
    ptx = arrays.compile_for_gpu(answers, "add_kernel", TYPES, {"BLOCK": 1024}, multiples_of_16=TYPES)
    check(".reqntid 128" in ptx, "the kernel does not have 4 warps")
    wide, narrow = ptx.count("ld.global.v4"), ptx.count("ld.global.b32")
    check((wide, narrow) == (4, 0), "a thread has 8 elements of either input: 4 loads of 16 bytes, not %d and %d of 4"
          % (wide, narrow))
