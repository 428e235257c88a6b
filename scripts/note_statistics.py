"""Lesson 09's statistics for the figures of the notes: Student's t by quadrature, intervals, comparisons."""

import functools
import math
import statistics


def tail(t, dof):
    """P(|T| >= t): with t = sqrt(dof) tan(angle) the density is a power of the cosine; Simpson's rule."""
    scale = 2 * math.exp(math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)) / math.sqrt(math.pi)
    low, steps = math.atan(abs(t) / math.sqrt(dof)), 400
    width = (math.pi / 2 - low) / steps
    heights = [max(math.cos(low + i * width), 0) ** (dof - 1) for i in range(steps + 1)]
    return scale * width / 3 * (heights[0] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]) + heights[-1])


@functools.cache
def critical(dof, outside=0.05):
    """The t that |T| exceeds with this probability."""
    low, high = 0, 1
    while tail(high, dof) > outside:
        low, high = high, 2 * high
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, dof) > outside else (low, middle)
    return high


def half_width(samples, factor=None):
    """Of the mean's 95 % interval; with the factor 1.96, what a table of the normal distribution gives."""
    n = len(samples)
    return (factor or critical(n - 1)) * statistics.stdev(samples) / math.sqrt(n)


def percentile(samples, p):
    """Type 7: between the two samples around (n - 1) p / 100."""
    x, h = sorted(samples), (len(samples) - 1) * p / 100
    k = min(int(h), len(x) - 2)
    return x[k] + (h - k) * (x[k + 1] - x[k])


class Welch:
    """The means of a and b, their samples taken one apart from the other."""

    def __init__(self, a, b):
        parts = [statistics.variance(x) / len(x) for x in (a, b)]
        self.difference, self.error = statistics.fmean(a) - statistics.fmean(b), math.sqrt(sum(parts))
        self.dof = sum(parts) ** 2 / sum(p * p / (len(x) - 1) for p, x in zip(parts, (a, b)))
        self.p = tail(self.difference / self.error, self.dof)
        self.half = critical(self.dof) * self.error


class Paired:
    """The differences a - b of samples taken in pairs."""

    def __init__(self, a, b):
        differences = [x - y for x, y in zip(a, b)]
        self.difference, self.dof = statistics.fmean(differences), len(a) - 1
        self.error = statistics.stdev(differences) / math.sqrt(len(a))
        self.p = tail(self.difference / self.error, self.dof)
        self.half = critical(self.dof) * self.error
