"""The report's page, written by processes of its own."""

import subprocess
import sys
from pathlib import Path

from mvstack.report.page import render
from mvstack.report.summary import gather

SAMPLES = Path(__file__).parents[1] / "data" / "report"


def test_the_same_records_give_the_same_bytes_in_another_process(tmp_path):
    program = (
        "import sys; from pathlib import Path; from mvstack.report.page import write_html;"
        "from mvstack.report.summary import gather;"
        "write_html(gather(Path(sys.argv[1])), Path(sys.argv[2]))"
    )
    made = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.html"
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "TZ": f"X{seed}"}
        command = [sys.executable, "-c", program, str(SAMPLES / "mvapich-two-devices"), str(path)]
        subprocess.run(command, check=True, env={**environment, "HOME": str(tmp_path)})
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert made[0].decode() == render(gather(SAMPLES / "mvapich-two-devices"))


def test_matplotlib_is_not_imported_before_a_page_is_written():
    program = "import sys, mvstack.report.page; sys.exit('matplotlib' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0
