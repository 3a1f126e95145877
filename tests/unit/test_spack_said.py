"""What `spack install` prints, line for line as version 1.1.0 prints it."""

from __future__ import annotations

from mvstack.builders.spack.runner import Package, Said

GOOD = """\
[+] /usr (external glibc-2.36-vtdq6aywjbrgu6dl5xhaiuxbhutzo7s5)
==> Installing compiler-wrapper-1.0-psk5ywlqk37svhyzn7rlhhr7sgeqmjkr [3/40]
==> Warning: included configuration files should be updated manually [files=a/packages.yaml]
==> No patches needed for compiler-wrapper
==> compiler-wrapper: Executing phase: 'install'
==> compiler-wrapper: Successfully installed compiler-wrapper-1.0-psk5ywlqk37svhyzn7rlhhr7sgeqmjkr
  Stage: 0.00s.  Install: 0.12s.  Post-install: 0.05s.  Total: 0.20s
[+] /tree/software/compiler-wrapper-1.0-psk5ywl
==> Installing hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz [4/40]
==> hpcc: Executing phase: 'edit'
==> hpcc: Executing phase: 'build'
==> hpcc: Executing phase: 'install'
==> hpcc: Successfully installed hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz
  Stage: 1.51s.  Build: 1m 2.50s.  Install: 0.10s.  Post-install: 0.12s.  Total: 1h 1m 4.43s
[+] /tree/software/hpcc-1.5.0-uigp2v3
"""
BAD = """\
==> Installing hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz [4/40]
==> hpcc: Executing phase: 'build'
==> Error: ProcessError: Command exited with status 2:
    '/usr/bin/make' '-j2'

See build log for details:
  /tree/spack/stage/spack-stage-hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz/spack-build-out.txt

==> Warning: hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz failed to install
"""


def heard(text: str) -> tuple[Said, list[tuple[str, str, str]]]:
    """What was understood, and the events in their order."""
    events: list[tuple[str, str, str]] = []

    def on(event: str, package: Package) -> None:
        events.append((event, package.hash[:4], package.phase))

    said = Said(on)
    for line in text.splitlines():
        said.line(line)
    return said, events


def test_packages_begin_and_end_with_their_phases() -> None:
    _, events = heard(GOOD)
    assert events == [
        ("begin", "psk5", ""),
        ("phase", "psk5", "install"),
        ("done", "psk5", "install"),
        ("begin", "uigp", ""),
        ("phase", "uigp", "edit"),
        ("phase", "uigp", "build"),
        ("phase", "uigp", "install"),
        ("done", "uigp", "install"),
    ]


def test_times_are_seconds() -> None:
    said, _ = heard(GOOD)
    hpcc = said.packages["uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz"]
    assert hpcc.seconds == 3664.43 and hpcc.count == "4 of 40"
    assert hpcc.steps == {
        "stage": 1.51,
        "build": 62.5,
        "install": 0.1,
        "post-install": 0.12,
    }


def test_a_failure_is_told_with_package_phase_and_log() -> None:
    said, _ = heard(BAD)
    assert said.failed == ["uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz"]
    assert said.packages[said.failed[0]].phase == "build" and not said.packages[said.failed[0]].done
    assert said.errors == ["ProcessError: Command exited with status 2:"]
    assert said.logs == [
        "/tree/spack/stage/spack-stage-hpcc-1.5.0-uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz/"
        "spack-build-out.txt"
    ]


def test_colours_are_taken_away() -> None:
    said = Said()
    line = (
        "\x1b[1;34m==>\x1b[0m \x1b[1mInstalling\x1b[0m \x1b[1;32ma-1-" + "a" * 32 + "\x1b[0m [1/2]"
    )
    assert said.line(line).startswith("==> Installing a-1-")
    assert said.packages["a" * 32].count == "1 of 2"


def test_a_binary_is_told_from_a_build() -> None:
    key = "uigp2v3b7n2dpjsnvtnzi7ejnkm4hkwz"
    said, events = heard(
        f"==> Installing hpcc-1.5.0-{key} [4/40]\n"
        f"==> Extracting hpcc-1.5.0-{key} from binary cache\n"
        f"==> hpcc: Successfully installed hpcc-1.5.0-{key}\n"
        "  Search: 0.00s.  Fetch: 0.10s.  Extract: 0.20s.  Relocate: 0.10s.  Total: 0.40s\n"
    )
    assert said.packages[key].cached and said.packages[key].done
    assert [event for event, *_ in events] == ["begin", "phase", "done"]


def test_a_binary_whose_beginning_is_told_after_its_end() -> None:
    """As `spack install --use-buildcache only` prints it."""
    key = "c32vtkcoibxexo64m3522mszozfpixis"
    said, events = heard(
        "gpg: Good signature from somebody\n"
        f"==> Extracting hpcc-1.5.0-{key} from binary cache\n"
        f"==> hpcc: Successfully installed hpcc-1.5.0-{key}\n"
        "  Search: 0.00s.  Fetch: 0.02s.  Install: 0.03s.  Relocate: 0.01s.  Total: 0.04s\n"
        "[+] /tree/software/hpcc-1.5.0-c32vtkc\n"
        f"==> Installing hpcc-1.5.0-{key} [5/5]\n"
    )
    assert said.packages[key].cached and said.packages[key].done and said.current is None
    assert [event for event, *_ in events] == ["begin", "phase", "done"]
