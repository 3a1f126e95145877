"""Writes a square of quadrilaterals, periodic both ways, in Gmsh's format 2.2.

python3 pyfr_mesh.py [cells along an edge] > square.msh
"""

import sys

HALF = 10.0  # the square is [-HALF, HALF]²
SIDES = ("periodic_x_l", "periodic_x_r", "periodic_y_l", "periodic_y_r")


def main():
    cells = int(sys.argv[1]) if sys.argv[1:] else 12
    points = cells + 1

    def node(i, j):
        return 1 + i + points * j

    print("$MeshFormat\n2.2 0 8\n$EndMeshFormat")
    print(f"$PhysicalNames\n{len(SIDES) + 1}")
    for number, name in enumerate(SIDES, 1):
        print(f'1 {number} "{name}"')
    print(f'2 {len(SIDES) + 1} "fluid"\n$EndPhysicalNames')
    print(f"$Nodes\n{points**2}")
    for j in range(points):
        for i in range(points):
            print(node(i, j), *(f"{HALF * (2 * k / cells - 1):.12g}" for k in (i, j)), 0)
    print("$EndNodes")
    rows = []
    for k in range(cells):  # lines are type 1, quadrilaterals type 3
        ends = (
            ((0, k), (0, k + 1)),
            ((cells, k), (cells, k + 1)),
            ((k, 0), (k + 1, 0)),
            ((k, cells), (k + 1, cells)),
        )
        for side, pair in enumerate(ends, 1):
            rows.append((1, 2, side, side, *(node(*end) for end in pair)))
    for j in range(cells):
        for i in range(cells):
            corners = ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
            rows.append((3, 2, len(SIDES) + 1, 1, *(node(*corner) for corner in corners)))
    print(f"$Elements\n{len(rows)}")
    for number, row in enumerate(rows, 1):
        print(number, *row)
    print("$EndElements")


main()
