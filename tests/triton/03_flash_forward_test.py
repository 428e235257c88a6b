"""O and lse against a brute-force oracle in double precision, on ragged shapes, each head with other data."""

import arrays
from runner import check, test

EPSILON = 2.0 ** -24


class Problem:
    def __init__(self, batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, causal=False, size=1.0, scale=None):
        import numpy
        self.causal, self.scale = causal, scale if scale else head_dim ** -0.5
        random = numpy.random.default_rng(seqlen_q * 1000 + seqlen_k)
        shapes = [(batch, q_heads, seqlen_q, head_dim)] + [(batch, kv_heads, seqlen_k, head_dim)] * 2
        self.Q, self.K, self.V = (random.standard_normal(shape).astype(numpy.float32) for shape in shapes)
        self.Q *= numpy.float32(size)
        self.says = "[%d, %d/%d heads, %d x %d, %d]%s" % (batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim,
                                                         " causal" * causal)

    def oracle(self):
        """O and lse, in double precision and all at once; and the largest sum of a score's |products|."""
        import numpy
        group = self.Q.shape[1] // self.K.shape[1]
        Q, K, V = (m.astype(numpy.float64) for m in (self.Q, self.K.repeat(group, 1), self.V.repeat(group, 1)))
        S = self.scale * Q @ K.swapaxes(2, 3)
        size = (self.scale * abs(Q) @ abs(K).swapaxes(2, 3)).max(initial=0.0)
        rows, keys = self.Q.shape[2], self.K.shape[2]
        if self.causal:
            S[..., numpy.arange(keys)[None, :] > numpy.arange(rows)[:, None] + keys - rows] = -numpy.inf
        top = S.max(axis=3, keepdims=True, initial=-numpy.inf)
        P = numpy.exp(S - numpy.where(numpy.isinf(top), 0.0, top))
        total = P.sum(axis=3, keepdims=True)
        with numpy.errstate(divide="ignore"):
            return P @ V / numpy.where(total == 0, 1.0, total), (top + numpy.log(total))[..., 0], size


def solve(answers, problem):
    place = arrays.prepare(answers)
    import numpy
    inputs = [place.array(name, getattr(problem, name)) for name in "QKV"]
    outputs = [place.array(name, numpy.full(shape, arrays.POISON, numpy.float32))
               for name, shape in (("O", problem.Q.shape), ("lse", problem.Q.shape[:3]))]
    answers.flash_forward(*inputs, *outputs, problem.scale, problem.causal)
    O, lse, size = problem.oracle()
    head_dim, keys = problem.Q.shape[3], problem.K.shape[2]
    # A score is wrong by at most head_dim + 8 roundings (its sum, the scale, the exponent), each EPSILON of the sum of
    # its products' magnitudes, which `size` bounds; a weight by as much of itself. A sum over keys rounds once a key.
    tolerance = EPSILON * ((head_dim + 8) * max(size, 1.0) + keys + 8)
    of_O = 2 * tolerance * abs(problem.V).max(initial=1.0)
    arrays.all_close("O of " + problem.says, place.numpy(outputs[0]), O, of_O)
    arrays.all_close("lse of " + problem.says, place.numpy(outputs[1]), lse, tolerance)


def run(answers, *shapes, **options):
    arrays.prepare(answers)
    for shape in shapes:
        solve(answers, Problem(*shape, **options))


def probe(answers, name, outputs, *inputs, sizes):
    """Runs one probe; the outputs, which begin as given, come back."""
    place = arrays.prepare(answers)
    import probes
    kernel = probes.kernels(answers)[name]
    made = [place.array(argument, values) if hasattr(values, "shape") else values
            for argument, values in zip(kernel.arg_names, inputs)]
    kernel[(1,)](*made, *sizes)
    return [place.numpy(made[i]) for i in outputs]


@test("Load.ZerosBehindTheLastRowAndColumn")
def _(answers):
    arrays.prepare(answers)
    import numpy
    for count, head_dim, first, rows, block_h in ((16, 16, 0, 16, 16), (9, 5, 0, 16, 16), (40, 24, 32, 16, 32)):
        matrix = numpy.random.default_rng(count).standard_normal((count, head_dim)).astype(numpy.float32)
        right = numpy.zeros((rows, block_h))
        part = matrix[first:first + rows]
        right[:len(part), :head_dim] = part
        out = numpy.full((rows, block_h), arrays.POISON, numpy.float32)
        mine, = probe(answers, "load_tile", [1], matrix, out, first, count, sizes=(head_dim, rows, block_h))
        arrays.all_close("the tile of rows %d to %d of [%d, %d]" % (first, first + rows - 1, count, head_dim),
                         mine, right, 0.0)


def masked(answers, causal, cases):
    arrays.prepare(answers)
    import numpy
    for first_q, first_k, seqlen_q, seqlen_k in cases:
        S = numpy.random.default_rng(3).standard_normal((16, 16)).astype(numpy.float32)
        rows, keys = first_q + numpy.arange(16)[:, None], first_k + numpy.arange(16)[None, :]
        seen = (keys < seqlen_k) & ((keys <= rows + seqlen_k - seqlen_q) | (not causal))
        out = numpy.full((16, 16), arrays.POISON, numpy.float32)
        mine, = probe(answers, "mask_scores", [1], S, out, first_q, first_k, seqlen_q, seqlen_k, sizes=(causal, 16, 16))
        arrays.all_close("scores of rows from %d and keys from %d, %d x %d%s"
                         % (first_q, first_k, seqlen_q, seqlen_k, ", causal" * causal),
                         mine, numpy.where(seen, S, -numpy.inf), 0.0)


@test("Mask.KeysBehindTheEnd")
def _(answers):
    masked(answers, False, ((0, 0, 16, 16), (0, 0, 16, 9), (16, 32, 20, 41)))


@test("Mask.KeysBehindTheDiagonal")
def _(answers):
    masked(answers, True, ((0, 0, 16, 16), (16, 16, 40, 40), (0, 16, 16, 30), (16, 0, 40, 20)))


@test("Update.OneTileIsSoftmax")
def _(answers):
    after_tiles(answers, tiles=1, hidden=0)


@test("Update.ALaterTileRescalesWhatWasSummed")
def _(answers):
    after_tiles(answers, tiles=3, hidden=0)


@test("Update.RowsThatSawNoKeyYet")
def _(answers):
    after_tiles(answers, tiles=3, hidden=2)


def after_tiles(answers, tiles, hidden):
    """The state after some tiles of growing scores, of which row 0 does not see the first `hidden`."""
    arrays.prepare(answers)
    import numpy
    random, scale, log2_e = numpy.random.default_rng(7), 0.3, 1.44269504
    grow = numpy.arange(1, tiles + 1, dtype=numpy.float32)[:, None, None]
    S = grow * random.standard_normal((tiles, 16, 16)).astype(numpy.float32)
    S[:hidden, 0] = -numpy.inf
    row_max, row_sum = numpy.full(16, -numpy.inf, numpy.float32), numpy.zeros(16, numpy.float32)
    acc = numpy.zeros((16, 16), numpy.float32)
    for seen, tile in enumerate(S, 1):
        P = numpy.full((16, 16), arrays.POISON, numpy.float32)
        state = probe(answers, "update", [1, 2, 3, 4], tile, row_max, row_sum, acc, P, scale * log2_e,
                      sizes=(16, 16, 16))
        row_max, row_sum, acc, P = (part.copy() for part in state)
        acc += P  # as if V were the unit matrix
        scores = S[:seen].astype(numpy.float64)
        top = scores.max(axis=(0, 2))
        weights = numpy.exp(scale * (scores - numpy.where(numpy.isinf(top), 0, top)[None, :, None]))
        # Scores up to about 10, exponents of a few roundings each, 16 keys a tile.
        tolerance = EPSILON * 64 * seen
        says = " after %d tiles, of which row 0 sees %d" % (seen, max(0, seen - hidden))
        arrays.all_close("row_max" + says, row_max, top, 0.0)
        arrays.all_close("row_sum" + says, row_sum, weights.sum(axis=(0, 2)), tolerance * 16)
        arrays.all_close("acc" + says, acc, weights.sum(axis=0), tolerance)


@test("Scores.WholeTilesMatchOracle")
def _(answers):
    run(answers, (1, 1, 1, 64, 64, 64), (1, 1, 1, 64, 192, 32), (1, 2, 2, 128, 128, 16))


@test("Ragged.AnyLength")
def _(answers):
    run(answers, (1, 1, 1, 1, 1, 16), (1, 1, 1, 63, 65, 32), (1, 1, 1, 65, 63, 16), (1, 1, 1, 37, 131, 64))


@test("Ragged.AnyHeadDim")
def _(answers):
    run(answers, (1, 2, 2, 17, 70, 1), (1, 2, 2, 70, 17, 24), (1, 1, 1, 33, 65, 80))


@test("Ragged.PaddedKeysHaveNoWeight")
def _(answers):
    """All scores far below 0: a padded key, whose score is 0, would take all the weight."""
    arrays.prepare(answers)
    problem = Problem(1, 1, 1, 9, 70, 16)
    problem.Q[...], problem.K[...] = -abs(problem.Q) - 3, abs(problem.K) + 3
    solve(answers, problem)


@test("Causal.SquareAndRagged")
def _(answers):
    run(answers, (1, 2, 2, 64, 64, 32), (1, 1, 1, 130, 130, 16), (1, 1, 1, 50, 131, 16), causal=True)


@test("Causal.RowsWithoutKeys")
def _(answers):
    run(answers, (1, 1, 1, 70, 5, 16), (1, 1, 1, 131, 66, 16), causal=True)


@test("Visited.AsManyKeysAsTheLastRowSees")
def _(answers):
    arrays.prepare(answers)
    import numpy
    for first_q, seqlen_q, seqlen_k in ((0, 64, 64), (64, 256, 256), (192, 200, 200), (0, 20, 100), (64, 90, 300),
                                        (64, 200, 90)):
        out = numpy.full(1, arrays.POISON, numpy.float32)
        mine, = probe(answers, "keys_visited", [0], out, first_q, seqlen_q, seqlen_k, sizes=(True, 64))
        right = numpy.array([min(first_q + 64, seqlen_q) + seqlen_k - seqlen_q], float)
        arrays.all_close("keys visited from row %d, %d x %d" % (first_q, seqlen_q, seqlen_k), mine, right, 0.0)


@test("Causal.ReadsNoTileBehindTheDiagonal")
def _(answers):
    """NaN in the keys and values that no row of the program sees must not be met: NaN times a weight of 0 is NaN."""
    arrays.prepare(answers)
    import numpy
    block_q, block_k = answers.BLOCK_Q, answers.BLOCK_K
    seqlen = 2 * max(block_q, block_k)
    problem = Problem(1, 1, 1, seqlen, seqlen, 16, causal=True)
    place = arrays.prepare(answers)
    first = -(-block_q // block_k) * block_k  # the first program visits no key from here on
    K, V = problem.K.copy(), problem.V.copy()
    K[:, :, first:], V[:, :, first:] = arrays.POISON, arrays.POISON
    O = place.array("O", numpy.full(problem.Q.shape, arrays.POISON, numpy.float32))
    lse = place.array("lse", numpy.full(problem.Q.shape[:3], arrays.POISON, numpy.float32))
    answers.flash_forward(place.array("Q", problem.Q), place.array("K", K), place.array("V", V), O, lse,
                          problem.scale, True)
    bad = int(numpy.isnan(place.numpy(O)[:, :, :block_q]).sum())
    check(bad == 0, "%d elements of O of the first program are NaN: it visits a tile that none of its rows sees" % bad)


@test("Heads.EachHasItsOwnData")
def _(answers):
    run(answers, (2, 3, 3, 21, 40, 16))


@test("Heads.NeighboursShareAKvHead")
def _(answers):
    run(answers, (2, 6, 2, 21, 40, 16), (1, 4, 1, 66, 66, 16))


@test("Logits.LargeOnesDoNotOverflow")
def _(answers):
    run(answers, (1, 1, 1, 20, 150, 16), size=60.0)


@test("Logits.TheMaximumMovesInEveryTile")
def _(answers):
    arrays.prepare(answers)
    import numpy
    problem = Problem(1, 1, 1, 10, 5 * answers.BLOCK_K, 16)
    problem.Q[...] = abs(problem.Q)
    problem.K[...] = abs(problem.K) * numpy.linspace(0.1, 3.0, problem.K.shape[2], dtype=numpy.float32)[:, None]
    solve(answers, problem)


@test("Scale.IsTheCallers")
def _(answers):
    run(answers, (1, 1, 1, 30, 70, 16), scale=0.7)


@test("Compiles.ForAGpu")
def _(answers):
    types = {**dict.fromkeys(("Q", "K", "V", "O", "lse"), "*fp32"), "scale": "fp32",
             **dict.fromkeys(("seqlen_q", "seqlen_k", "group"), "i32")}
    # Small tiles: the products of float32 are unrolled, and large ones take the compiler ten seconds.
    sizes = {"HEAD_DIM": 16, "CAUSAL": True, "BLOCK_Q": 16, "BLOCK_K": 16, "BLOCK_H": 16}
    ptx = arrays.compile_for_gpu(answers, "flash_kernel", types, sizes, multiples_of_16=("Q", "K", "V", "O", "lse"))
    for instruction in ("cp.async", "ld.shared", "bar.sync", "shfl.sync"):  # the note says that they are there
        check(instruction in ptx, "the code has no %s" % instruction)
