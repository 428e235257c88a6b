"""Where a test's Triton kernels run: on a GPU through PyTorch where both are there, else in Triton's interpreter, which
needs numpy and no PyTorch. There every load and store of a lane is looked up: it must lie in an array of the test."""

import glob
import importlib.util
import os
import sys
import tempfile

from runner import ROOT, Failure, Skipped, cause, check

POISON = float("nan")
CHOSEN = []  # the back end of this process
GUARD = 4096  # elements between arrays: what is read there is NaN, and is no other array
VENV_PYTHON = os.path.join(ROOT, ".venv", "bin", "python")


def _installed(*names):
    return all(importlib.util.find_spec(name) for name in names)


def _has_gpu():
    if not glob.glob("/dev/nvidia[0-9]*") or not _installed("torch"):
        return False
    import torch
    return torch.cuda.is_available()


def prepare(answers):
    """The back end, without arrays. Runs on in the workbook's .venv where that has Triton and this Python has not."""
    if CHOSEN:
        CHOSEN[0].ranges.clear()
        return CHOSEN[0]
    _find_triton(answers)
    if os.environ.get("NANOLM_TRITON_CPU") != "1" and _has_gpu():
        answers.first_gap()  # a kernel that is compiled cannot raise
        CHOSEN.append(Device())
    else:
        os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
        CHOSEN.append(Interpreter())
    return CHOSEN[0]


def _find_triton(answers):
    if _installed("triton", "numpy"):
        return
    if os.path.exists(VENV_PYTHON) and not os.path.samefile(sys.prefix, os.path.join(ROOT, ".venv")):
        os.execv(VENV_PYTHON, [VENV_PYTHON, *sys.argv])
    answers.first_gap()
    raise Skipped("Triton is not installed. scripts/workbook check triton --install")


def compile_for_gpu(answers, kernel, types, constants, multiples_of_16=()):
    """The PTX for an H100; no GPU is needed. What the interpreter lets pass the compiler may refuse. It is told of
    arguments that are multiples of 16, as a launch tells it."""
    _find_triton(answers)
    answers.first_gap()
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(TRITON_CACHE_DIR=cache, TRITON_INTERPRET="0", TRITON_DEFAULT_FP_FUSION="1")
        import triton
        from triton.backends.compiler import GPUTarget
        attributes = {(list(types).index(name),): [["tt.divisibility", 16]] for name in multiples_of_16}
        source = triton.compiler.ASTSource(getattr(answers, kernel), types, constexprs=constants, attrs=attributes)
        try:
            return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
        except triton.CompilationError as error:
            # It quotes the kernel down to the line, then a mark under the place, then what is wrong.
            quoted = [line for line in str(cause(error)).splitlines() if line.strip()]
            mark = max((i for i, line in enumerate(quoted) if line.strip() == "^"), default=1)
            raise Failure("\n".join(["%s is not compiled:" % kernel] + quoted[mark - 1:])) from None


class Device:
    """PyTorch's tensors. What lies outside an array is not looked at."""

    def __init__(self):
        import torch
        self.torch, self.ranges = torch, []

    def array(self, _name, values):
        return self.torch.from_numpy(values).to("cuda")

    def numpy(self, array):
        return array.cpu().numpy()


class Storage:
    """What Triton's interpreter asks of the memory behind a tensor: it copies it in, and back."""

    def __init__(self, memory):
        self.memory = memory

    def data_ptr(self):
        return self.memory.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        self.memory[...] = other.memory


class Array:
    """A float32 array with as much of torch.Tensor as a launch looks at."""
    dtype, device = "torch.float32", "cpu"

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def numel(self):
        return self.values.size

    def size(self):
        return self.shape

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)

    def storage_offset(self):
        return 0

    def data_ptr(self):
        return self.values.ctypes.data

    def untyped_storage(self):
        return Storage(self.values)

    def new_empty(self, _size, device):
        return Array(self.values)

    def set_(self, storage, _offset, _size, _stride):
        self.values = storage.memory
        return self


class Interpreter:
    def __init__(self):
        from triton.runtime import interpreter
        self.ranges, self.native = [], interpreter._interpreter
        interpreter._interpreter = self

    def __getattr__(self, name):  # all that is neither load nor store
        return getattr(self.native, name)

    def array(self, name, values):
        import numpy
        memory = numpy.full(values.size + 2 * GUARD, POISON, numpy.float32)
        inside = memory[GUARD:GUARD + values.size].reshape(values.shape)
        inside[...] = values
        self.ranges.append((name, inside.ctypes.data, inside.ctypes.data + inside.nbytes, memory))
        return Array(inside)

    def numpy(self, array):
        return array.values

    def load(self, addresses, mask, other, dtype):
        self._look("a program loads outside the arrays", addresses, mask)
        return self.native.load(addresses, mask, other, dtype)

    def store(self, addresses, values, mask):
        self._look("a program stores outside the arrays", addresses, mask)
        return self.native.store(addresses, values, mask)

    def _look(self, says, addresses, mask):
        import numpy
        addresses, mask = numpy.broadcast_arrays(addresses, mask)
        used = addresses[mask.astype(bool)]
        inside = numpy.zeros(used.shape, bool)
        for _, first, end, _ in self.ranges:
            inside |= (used >= first) & (used < end)
        if inside.all():
            return
        wild = int(used[~inside][0])
        # The array in front of which or behind which it lies: the nearest end.
        name, first, end, _ = min(self.ranges, key=lambda one: min(abs(wild - one[1]), abs(wild - one[2])))
        where = ("%d elements behind the end of %s" % ((wild - end) // 4 + 1, name) if wild >= end else
                 "%d elements in front of %s" % ((first - wild) // 4, name))
        raise Failure("%s: %d of %d lanes, the first %s (mask them)" % (says, int((~inside).sum()), used.size, where))


def all_close(what, mine, right, tolerance):
    """Accepts only what is within the tolerance, so NaN never passes; infinities must be the same."""
    import numpy
    mine = mine.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        error = numpy.where(mine == right, 0.0, abs(mine - right))
        wrong = ~(error <= tolerance)
    if wrong.any():
        at = numpy.unravel_index(numpy.where(numpy.isnan(error), numpy.inf, error).argmax(), error.shape)
        check(False, "%d of %d elements are wrong, the worst at %s: %.9g, expected %.9g, tolerance %.2g\nwith %s"
              % (int(wrong.sum()), wrong.size, list(map(int, at)), mine[at], right[at], tolerance, what))
