"""The report of one tree: what was chosen and why, built from which sources, run with which result.

:func:`gather` reads the records, :func:`print_report` is the terminal's view, :func:`write_html`
the page, :func:`as_json` the script's.
"""

from mvstack.report.page import write_html
from mvstack.report.summary import Report, as_json, gather
from mvstack.report.terminal import print_report

__all__ = ["Report", "as_json", "gather", "print_report", "write_html"]
