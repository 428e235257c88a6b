"""Stands in for triton and triton.language where a kernel is read and not computed: blocks are lists of numbers, and
loads and stores are written down. What it says of an access comes from running the kernel, not from a table."""

import contextlib
import itertools
import operator
import sys
import types
from collections import namedtuple

# A load or store of one program: the array, and for each lane the element, or None where the mask is false.
Access = namedtuple("Access", "kind array elements")


class Block:
    """Numbers of a shape, with Triton's broadcasting."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), list(values)

    def __getitem__(self, index):
        """Only [:, None] and [None, :], as kernels write them."""
        kept = iter(self.shape)
        shape = [1 if part is None else next(kept) for part in index]
        return Block(shape, self.values)

    def to(self, _type):
        return self

    def broadcast(self, shape):
        old = (1,) * (len(shape) - len(self.shape)) + self.shape
        for have, want in zip(old, shape):
            if have not in (1, want):
                raise ValueError("shapes %r and %r do not fit" % (self.shape, shape))
        strides, step = [], 1
        for size in reversed(old):
            strides.insert(0, 0 if size == 1 else step)
            step *= size
        places = itertools.product(*map(range, shape))
        return Block(shape, [self.values[sum(i * s for i, s in zip(place, strides))] for place in places])


def block(value):
    return value if isinstance(value, Block) else Block((), [value])


def together(*values):
    """The operands, broadcast to one shape."""
    blocks = [block(value) for value in values]
    rank = max(len(b.shape) for b in blocks)
    shapes = [(1,) * (rank - len(b.shape)) + b.shape for b in blocks]
    shape = tuple(max(sizes) for sizes in zip(*shapes))
    return [b.broadcast(shape) for b in blocks]


def elementwise(function, *values):
    blocks = together(*values)
    result = Block(blocks[0].shape, map(function, *(b.values for b in blocks)))
    return result if result.shape else result.values[0]


def _operators():
    for name in ("add", "sub", "mul", "floordiv", "mod", "and_", "lt", "le", "gt", "ge"):
        function, name = getattr(operator, name), name.rstrip("_")
        setattr(Block, "__%s__" % name, lambda self, other, f=function: elementwise(f, self, other))
        setattr(Block, "__r%s__" % name, lambda self, other, f=function: elementwise(f, other, self))


_operators()


class Machine:
    """Runs one program of a grid and writes down its accesses. Arrays are far apart, so an address tells the array."""
    SPACE = 1 << 40

    def __init__(self):
        self.pid, self.grid, self.names, self.accesses = (0, 0, 0), (1, 1, 1), [], []

    def array(self, name):
        self.names.append(name)
        return len(self.names) * self.SPACE + self.SPACE // 2  # an element may lie in front of the array

    def access(self, kind, pointer, mask):
        pointer, mask = together(pointer, mask)
        elements = [address % self.SPACE - self.SPACE // 2 if seen else None
                    for address, seen in zip(pointer.values, mask.values)]
        self.accesses.append(Access(kind, self.names[pointer.values[0] // self.SPACE - 1], elements))
        return pointer.shape

    def load(self, pointer, mask=True, other=None):
        shape = self.access("load", pointer, mask)
        return Block(shape, itertools.repeat(0.0, len(self.accesses[-1].elements)))

    def store(self, pointer, _value, mask=True):
        self.access("store", pointer, mask)

    def language(self):
        tl = types.ModuleType("triton.language")
        tl.constexpr, tl.float32, tl.int64 = object(), object(), object()
        tl.program_id, tl.num_programs = lambda axis: self.pid[axis], lambda axis: self.grid[axis]
        tl.arange = lambda first, end: Block((end - first,), range(first, end))
        tl.zeros = lambda shape, _type: Block(shape, itertools.repeat(0.0, _size(shape)))
        tl.cdiv = lambda a, b: -(-a // b)
        tl.minimum = lambda a, b: elementwise(min, a, b)
        tl.where = lambda c, a, b: elementwise(lambda c, a, b: a if c else b, c, a, b)
        tl.sum = lambda values, axis: Block([values.shape[1 - axis]], itertools.repeat(0.0, values.shape[1 - axis]))
        tl.load, tl.store = self.load, self.store
        return tl


def _size(shape):
    size = 1
    for length in shape:
        size *= length
    return size


@contextlib.contextmanager
def _in_place_of_triton(language):
    triton = types.ModuleType("triton")
    triton.jit, triton.language = (lambda kernel: kernel), language
    before = {name: sys.modules.get(name) for name in ("triton", "triton.language")}
    sys.modules.update({"triton": triton, "triton.language": language})
    try:
        yield
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})


def accesses(path, kernel, arrays, arguments, grid, pid):
    """What program `pid` of the grid accesses. The kernel is the function of this name in the file `path`; `arrays`
    are the names of its pointers, which come first."""
    machine = Machine()
    machine.grid, machine.pid = (tuple(grid) + (1, 1))[:3], (tuple(pid) + (0, 0))[:3]
    with open(path, encoding="utf-8") as file, _in_place_of_triton(machine.language()):
        namespace = {"__name__": "kernels"}
        exec(compile(file.read(), path, "exec"), namespace)
        namespace[kernel](*map(machine.array, arrays), **arguments)
    return machine.accesses
