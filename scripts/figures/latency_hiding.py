"""One scheduler of an SM with one warp and with four: who issues in which clock, who waits for memory."""

from svg import Picture

RUN, WAIT, CLOCKS = 5, 15, 60  # instructions between two loads, clocks until a load has come, clocks shown
LEFT, CELL, ROW = 90, 11, 22
TITLES = ("1 warp", "4 warps")
COLOURS = ("blue", "orange", "green", "violet")


def schedule(warps):
    """For each clock the warp that issues, or None: the first warp, in turn, that does not wait."""
    ready, left, issued, turn = [0] * warps, [RUN] * warps, [], 0
    for clock in range(CLOCKS):
        order = [(turn + i) % warps for i in range(warps)]
        warp = next((w for w in order if ready[w] <= clock), None)
        issued.append(warp)
        if warp is None:
            continue
        turn, left[warp] = warp, left[warp] - 1
        if left[warp] == 0:
            ready[warp], left[warp], turn = clock + 1 + WAIT, RUN, (warp + 1) % warps
    return issued


picture = Picture(760, 285, "Latency hiding",
                  "Time runs to the right. One warp issues five instructions, then waits fifteen clocks for memory, so "
                  "its scheduler is busy a quarter of the time. With four warps another one issues while the first "
                  "waits, and no clock is lost.")
y = 20
for title, warps in zip(TITLES, (1, 4)):
    issued = schedule(warps)
    busy = sum(warp is not None for warp in issued)
    picture.text(20, y + 4, f"{title}: {100 * busy / CLOCKS:.0f} %", weight="bold")
    y += 14
    for warp in range(warps):
        picture.text(LEFT - 8, y + 15, f"warp {warp}", fill=COLOURS[warp], size=13, anchor="end")
        mine = [clock for clock in range(CLOCKS) if issued[clock] == warp]
        picture.line(LEFT + CELL * mine[0], y + ROW / 2 - 1, LEFT + CELL * CLOCKS, y + ROW / 2 - 1, "line", 1.5,
                     stroke_dasharray="2 3")
        for clock in mine:
            picture.rect(LEFT + CELL * clock, y + 1, CELL - 1, ROW - 4, fill=COLOURS[warp])
        y += ROW
    picture.text(LEFT - 8, y + 15, "scheduler", size=13, anchor="end")
    for clock, warp in enumerate(issued):
        picture.rect(LEFT + CELL * clock, y + 1, CELL - 1, ROW - 4, fill="pale" if warp is None else COLOURS[warp])
    y += ROW + 34
y -= 14
picture.arrow(LEFT, y, LEFT + CELL * CLOCKS, y, "grey")
picture.text(LEFT + CELL * CLOCKS, y + 18, "clocks", fill="grey", size=13, anchor="end")
for tick in range(0, CLOCKS, 10):
    picture.text(LEFT + CELL * tick, y + 18, str(tick), fill="grey", size=13, anchor="middle")

picture.write(__file__)
