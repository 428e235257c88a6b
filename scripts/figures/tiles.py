"""The tiles of a causal score matrix in the order in which they are visited: query blocks outside, and key blocks."""

from svg import Picture

BLOCKS, CELL, STRIP, GAP = 6, 42, 30, 8
TOP, LEFTS = 112, (62, 462)
NOW = {"query": (3, 2), "key": (4, 1)}  # the tile that is being computed: query block, key block

picture = Picture(760, 430, "Two orders of walking the tiles of attention",
                  f"Twice the same causal score matrix of {BLOCKS} by {BLOCKS} tiles. On the left query blocks are the "
                  "outer loop: the visits, numbered, run along a row from the left to the diagonal; Q, m, d and o stay "
                  "on the chip and K and V pass by. On the right key blocks are the outer loop: the visits run down a "
                  "column; K and V stay and Q, O, m and d pass by. The "
                  f"{BLOCKS * (BLOCKS - 1) // 2} tiles above the diagonal are not visited.")


def strip(x, y, across, label, resident, current):
    """The blocks of a tensor along the matrix; the one in use is filled."""
    colour = "blue" if resident else "orange"
    for block in range(BLOCKS):
        place = (x + block * CELL, y, CELL, STRIP) if across else (x, y + block * CELL, STRIP, CELL)
        picture.rect(*place, fill=colour + "-pale" if block == current else None, stroke=colour)
        if block == current:
            picture.text(place[0] + place[2] / 2, place[1] + place[3] / 2 + 5, label, colour, 14, "middle", "bold")


def panel(left, outer, title, stays, moves):
    order = [(i, j) for i in range(BLOCKS) for j in range(BLOCKS)]
    if outer == "key":
        order.sort(key=lambda tile: (tile[1], tile[0]))
    visited = [(i, j) for i, j in order if j <= i]
    now = NOW[outer]
    middle = left + BLOCKS * CELL / 2
    picture.text(middle, 24, title, size=15, anchor="middle", weight="bold")
    strip(left, TOP - STRIP - GAP, True, "K V", outer == "key", now[1])
    strip(left - STRIP - GAP, TOP, False, "Q", outer == "query", now[0])
    for i in range(BLOCKS):
        for j in range(BLOCKS):
            x, y = left + j * CELL, TOP + i * CELL
            if j > i:
                picture.rect(x, y, CELL, CELL, "pale", "line", stroke_dasharray="3 3")
                continue
            done = visited.index((i, j)) < visited.index(now)
            picture.rect(x, y, CELL, CELL, "violet-pale" if (i, j) == now else "green-pale" if done else None, "ink")
            if i == j:  # the diagonal cuts it: above it scores are masked
                picture.path([(x, y), (x + CELL, y), (x + CELL, y + CELL)], "pale", "grey", 1, close=True)
            picture.text(x + CELL / 2 - (9 if i == j else 0), y + CELL / 2 + (14 if i == j else 5),
                         str(visited.index((i, j)) + 1), anchor="middle", weight="bold" if (i, j) == now else None)
    end = left + BLOCKS * CELL
    picture.text(end - 8, TOP + CELL * 0.6, "not visited", "grey", 13, "end")
    if outer == "query":
        picture.arrow(left, TOP - STRIP - GAP - 10, end, TOP - STRIP - GAP - 10, "orange", 2)
        picture.arrow(left - STRIP - GAP - 10, TOP, left - STRIP - GAP - 10, TOP + BLOCKS * CELL, "grey", 1)
    else:
        picture.arrow(left - STRIP - GAP - 10, TOP, left - STRIP - GAP - 10, TOP + BLOCKS * CELL, "orange", 2)
        picture.arrow(left, TOP - STRIP - GAP - 10, end, TOP - STRIP - GAP - 10, "grey", 1)
    bottom = TOP + BLOCKS * CELL
    picture.text(middle, bottom + 28, "on chip: " + stays, "blue", 14, "middle")
    picture.text(middle, bottom + 50, "HBM: " + moves, "orange", 14, "middle")


panel(LEFTS[0], "query", "FA2: query blocks outside", "Q, m, d, o", "K, V for each Q")
panel(LEFTS[1], "key", "FA1: key blocks outside", "K, V", "Q, O, m, d for each K, V")
picture.write(__file__)
