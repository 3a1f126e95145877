"""PyFR: a vortex goes through a periodic square on all ranks and keeps its form, mass and energy."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import SOURCES, AppMixin
