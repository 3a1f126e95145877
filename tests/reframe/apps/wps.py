"""WPS: geogrid puts a plane and two kinds of land, of which every value is known, on a map."""

import array
import sys
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

EAST_WEST, NORTH_SOUTH = 60, 50  # points of the map, 30 km apart, around COAST
COAST = -100.0  # the degree of longitude where water becomes land
WATER, LAND = 16, 2  # of the table of the USGS
NAMELIST = f"""&share
 wrf_core = 'ARW', max_dom = 1, io_form_geogrid = 2
/
&geogrid
 parent_id = 1, parent_grid_ratio = 1, i_parent_start = 1, j_parent_start = 1
 e_we = {EAST_WEST + 1}, e_sn = {NORTH_SOUTH + 1}, geog_data_res = 'default', dx = 30000, dy = 30000
 map_proj = 'lambert', ref_lat = 40, ref_lon = {COAST}
 truelat1 = 30, truelat2 = 60, stand_lon = {COAST}
 geog_data_path = './', opt_geogrid_tbl_path = './'
/
"""
TABLE = f"""===============================
name = LANDUSEF
 priority = 1
 dest_type = categorical
 z_dim_name = land_cat
 dominant = LU_INDEX
 landmask_water = default:{WATER}
 interp_option = default:nearest_neighbor
 rel_path = default:land/
===============================
name = HGT_M
 priority = 1
 dest_type = continuous
 interp_option = default:four_pt
 rel_path = default:height/
===============================
"""
INDEX = """type = {kind}
projection = regular_ll
dx = 1.0
dy = 1.0
known_x = 1.0
known_y = 1.0
known_lat = -89.5
known_lon = -179.5
wordsize = 2
signed = yes
tile_x = 360
tile_y = 180
tile_z = 1
units = "{units}"
description = "{kind}"
"""
CATEGORIES = "category_min = 1\ncategory_max = 24\n"


def height(latitude, longitude):
    """The plane, in metres: what is interpolated between its values lies on it."""
    return 1000 + 10 * latitude + 4 * longitude


def land(_latitude, longitude):
    """The kind of land there."""
    return WATER if longitude < COAST else LAND


def tile(value):
    """A whole world of ``value(latitude, longitude)`` in the format of WPS's own data."""
    rows = ((row - 89.5, column - 179.5) for row in range(180) for column in range(360))
    numbers = array.array("h", (round(value(*where)) for where in rows))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


@rfm.simple_test
class Wps(rfm.RunOnlyRegressionTest, AppMixin):
    """On these ranks geogrid finds the plane's height and the kind of land at every point."""

    software = "WPS"
    tags = {"app", "nightly", "wps"}
    ranks = parameter([1, 2, 4])
    results = ["map.cdl"]

    @run_before("run")
    def prepare(self):
        self.write_input("namelist.wps", NAMELIST)
        self.write_input("GEOGRID.TBL", TABLE)
        self._data("height", height, INDEX.format(kind="continuous", units="m"))
        self._data("land", land, INDEX.format(kind="categorical", units="category") + CATEGORIES)
        self.trace_loader("geogrid.exe")
        seen = "ncdump -v XLAT_M,XLONG_M,HGT_M,LU_INDEX geo_em.d01.nc > map.cdl"
        self.postrun_cmds = [seen, *self.postrun_cmds]

    def _data(self, name, value, index):
        folder = Path(self.stagedir, name)
        folder.mkdir(exist_ok=True)
        (folder / "index").write_text(index)
        (folder / "00001-00360.00001-00180").write_bytes(tile(value))


def complaints(text, _ranks):
    """What is wrong with the map that geogrid made."""
    done = r"Successful completion of geogrid"
    found = judging.said(done, text, "geogrid did not come to its end")
    names = ("XLAT_M", "XLONG_M", "HGT_M", "LU_INDEX")
    points = list(zip(*(judging.variable(name, text) for name in names), strict=False))
    found += judging.equal("points of the map", len(points), EAST_WEST * NORTH_SOUTH)
    # printed with seven digits, computed in single precision
    high = [point for point in points if not abs(point[2] - height(*point[:2])) < 0.01]
    # at the coast the nearest of WPS's points, a degree apart, may be of the other kind
    kinds = [
        point for point in points if point[3] != land(*point[:2]) and abs(point[1] - COAST) > 0.6
    ]
    found += judging.equal("points (latitude, longitude, height, kind) off the plane", high[:3], [])
    return found + judging.equal("points of the wrong kind of land", kinds[:3], [])


def figures(_text):
    """None: it takes no time."""
    return {}
