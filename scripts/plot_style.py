"""How the plots of the scripts look. Needs matplotlib."""

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

plt.rcParams.update({"font.size": 10, "svg.hashsalt": "nanolm", "svg.fonttype": "path"})
# Okabe and Ito's colours, which the colour-blind can tell apart. One colour for one thing in every plot.
COLOUR = {"naive": "#D55E00", "tiled": "#0072B2", "fast": "#009E73", "flash": "#0072B2", "matmul": "#009E73",
          "elementwise": "#CC79A7", "decode": "#E69F00", "roof": "#000000", "other": "#767676"}


def frame(axes, title, where):
    axes.set_title("%s\n" % title, loc="left", fontsize=12)
    axes.text(0, 1.02, where, transform=axes.transAxes, fontsize=8.5, color=COLOUR["other"])
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def empty(axes, why):
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", fontsize=11)


def log_axis(axis, ticks=None, label=None):
    """Numbers as people write them; no 10^3."""
    if ticks:
        axis.set_ticks(ticks)
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(label or (lambda value, _: "%g" % value)))


def legend_below(axes, columns):
    """Outside the axes, so that it never covers a point."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncol=columns, frameon=False, fontsize=8.5)


def powers(low, high, base):
    """Powers of `base` that cover [low, high]."""
    value, all_powers = 1.0, []
    while value > low:
        value /= base
    while value < high * base:
        if value * base > low:
            all_powers.append(value)
        value *= base
    return all_powers


def save(fig, folder, name):
    fig.savefig(os.path.join(folder, name + ".png"), dpi=150)
    fig.savefig(os.path.join(folder, name + ".svg"), metadata={"Date": None})
    plt.close(fig)
