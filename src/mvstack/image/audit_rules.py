"""What must not be left in an image that many machines start from: paths, and why, by rule.

The rules are in order: the first whose pattern matches a path speaks for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

IDENTITY = "every machine that starts from the image would have the same one"
SECRET = "whoever can start the image can read it"
OPEN = "whoever holds the other half can log in to every machine that starts from the image"
BUILDER = "it tells of the machine that built the image, and may be wrong on the one that starts"
STALE = "it makes the image larger, is out of date at first start, and differs in every build"


@dataclass(frozen=True)
class Rule:
    """Paths that are left behind, and why it matters.

    ``when``: *there* for whatever is at the path but a folder, *entry* for folders too, *filled*
    for a file that is not empty. ``found`` narrows a rule to files in which it is found, comments
    aside. A rule with ``below`` is told once for that folder, with the number of its files and
    their size. ``fails`` is False for what costs room and harms nobody.
    """

    paths: tuple[str, ...]
    what: str
    why: str
    when: Literal["there", "entry", "filled"] = "filled"
    found: re.Pattern[str] | None = None
    below: str = ""
    fails: bool = True


_MAC = re.compile(
    r"(?<![0-9a-f:])(?!(?:00:){5,}|(?:ff:){5,})(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}"
    r"(?![0-9a-f:])",
    re.IGNORECASE,
)
_PROXY = re.compile(
    r"\b\w*proxy\w*\b[\"']?\s*[=\s]\s*[\"']?(?!none|_none_|false|direct)[^\s\"';]", re.IGNORECASE
)
_NAMESERVER = re.compile(r"^\s*(?:nameserver\s+(?!127\.|::1)|search\s|domain\s)", re.MULTILINE)
_ISCSI = re.compile(r"^\s*InitiatorName\s*=\s*\S", re.MULTILINE)
_NETWORK = (
    "/etc/udev/rules.d/*",
    "/etc/systemd/network/**",
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/*",
    "/etc/netplan/*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/NetworkManager/system-connections/*",
)

RULES: tuple[Rule, ...] = (
    Rule(("/etc/ssh/ssh_host_*",), "SSH host key", f"{IDENTITY}, and could be taken for another"),
    Rule(("/**/.ssh/authorized_keys*", "/etc/ssh/authorized_keys/**"), "authorized SSH key", OPEN),
    Rule(
        ("/**/.ssh/known_hosts*", "/etc/ssh/ssh_known_hosts*"),
        "known SSH hosts",
        "it tells which hosts the builder reached",
    ),
    Rule(("/root/.ssh/**", "/home/*/.ssh/**"), "file of an SSH client", SECRET, "there"),
    Rule(
        (
            "/var/lib/systemd/random-seed",
            "/var/lib/random-seed",
            "/var/lib/urandom/random-seed",
            "/var/lib/misc/random-seed",
            "/boot/loader/random-seed",
            "/boot/efi/loader/random-seed",
            "/efi/loader/random-seed",
        ),
        "random seed",
        "machines that start from the image would draw the same numbers",
        "there",
    ),
    Rule(
        (
            "/var/lib/systemd/credential.secret",
            "/var/lib/NetworkManager/secret_key",
            "/etc/munge/munge.key",
            "/etc/slurm/*.key",
            "/**/private-keys-v1.d/*",
            "/etc/krb5.keytab",
            "/etc/*.keytab",
            "/var/lib/dkms/mok.key",
            "/var/lib/shim-signed/mok/MOK.priv",
            "/etc/pki/akmods/private/*",
            "/var/cache/debconf/passwords.dat",
        ),
        "secret of a service",
        f"{SECRET}, and {IDENTITY}",
    ),
    Rule(
        (
            "/root/.aws/**",
            "/home/*/.aws/**",
            "/root/.azure/**",
            "/home/*/.azure/**",
            "/root/.config/gcloud/**",
            "/**/.docker/config.json",
            "/root/.netrc",
            "/home/*/.netrc",
            "/root/.pypirc",
            "/root/.git-credentials",
            "/home/*/.git-credentials",
        ),
        "credentials of a client",
        SECRET,
    ),
    Rule(("/etc/nvme/hostid", "/etc/nvme/hostnqn"), "identity of an NVMe host", IDENTITY),
    Rule(("/etc/iscsi/initiatorname.iscsi",), "iSCSI initiator's name", IDENTITY, found=_ISCSI),
    Rule(
        (
            "/var/lib/dhcp/*",
            "/var/lib/dhclient/*",
            "/var/lib/dhcpcd/*",
            "/var/lib/NetworkManager/*.lease",
            "/var/lib/systemd/network/**",
        ),
        "DHCP lease or client identity",
        "a machine would ask for the builder's address",
    ),
    Rule(
        (
            "/var/lib/NetworkManager/timestamps",
            "/var/lib/NetworkManager/seen-bssids",
            "/etc/udev/rules.d/70-persistent-net.rules",
            "/etc/udev/rules.d/*persistent-ipoib.rules",
            "/etc/netplan/50-cloud-init.yaml",
            "/etc/network/interfaces.d/50-cloud-init*",
            "/etc/systemd/network/*cloud-init*",
            "/etc/NetworkManager/system-connections/cloud-init*",
        ),
        "network settings of the builder",
        "the interfaces of the machine that starts are others",
    ),
    Rule(
        _NETWORK,
        "network address of a card",
        "the cards of the machine that starts are others",
        found=_MAC,
    ),
    Rule(
        ("/var/lib/cloud/**", "/run/cloud-init/**", "/etc/sudoers.d/90-cloud-init-users"),
        "cloud-init's state of an instance",
        "cloud-init would take the new machine for the old one, or give its users old rights",
        "there",
    ),
    Rule(
        ("/var/lib/waagent/**", "/var/lib/amazon/**", "/var/lib/google/**"),
        "state of a cloud's agent",
        f"it holds certificates and names of the builder's instance; {IDENTITY}",
    ),
    Rule(
        ("/var/log/**", "/run/log/**", "/var/mail/*", "/var/spool/mail/*"),
        "log or mail with content",
        BUILDER,
    ),
    Rule(
        (
            "/root/.*history",
            "/home/*/.*history",
            "/root/.*hist",
            "/home/*/.*hist",
            "/root/.lesshst",
            "/home/*/.lesshst",
            "/root/.viminfo",
            "/home/*/.viminfo",
            "/root/.wget-hsts",
            "/home/*/.wget-hsts",
        ),
        "history of a shell or a tool",
        f"what was typed may hold passwords; {SECRET}",
    ),
    Rule(
        (
            "/tmp/packer-*",
            "/tmp/script_*.sh",
            "/etc/sudoers.d/*packer*",
            "/home/packer/**",
            "/root/packer*",
        ),
        "left behind by Packer",
        "it is a tool of the build, with the build's rights",
        "entry",
    ),
    Rule(("/tmp/**", "/var/tmp/**"), "temporary file", BUILDER, "entry"),
    Rule(
        ("/usr/local/share/ca-certificates/**", "/etc/pki/ca-trust/source/anchors/**"),
        "certificate authority added to the distribution's",
        "whoever holds its key could stand for any site towards every user of the image",
        "there",
    ),
    Rule(
        (
            "/etc/apt/apt.conf",
            "/etc/apt/apt.conf.d/*",
            "/etc/environment",
            "/etc/environment.d/*",
            "/etc/profile.d/*",
            "/etc/dnf/dnf.conf",
            "/etc/yum.conf",
            "/etc/yum.repos.d/*",
            "/etc/pip.conf",
            "/etc/wgetrc",
            "/root/.wgetrc",
            "/root/.curlrc",
            "/etc/systemd/system.conf.d/*",
        ),
        "proxy of the build's network",
        "downloads would fail elsewhere, or go through whoever has that name there",
        found=_PROXY,
    ),
    Rule(
        ("/etc/resolv.conf",),
        "name servers of the build's network",
        "names would not be found on the machine that starts until its own network answers",
        found=_NAMESERVER,
    ),
    Rule(
        (
            "/core",
            "/core.*",
            "/root/core",
            "/root/core.*",
            "/var/crash/**",
            "/var/lib/systemd/coredump/**",
            "/var/lib/apport/coredump/**",
            "/var/spool/abrt/**",
        ),
        "core dump",
        "it holds what was in a program's memory: keys and passwords too",
    ),
    Rule(
        (
            "/swapfile",
            "/swapfile?",
            "/swap",
            "/swap.img",
            "/mnt/swapfile",
            "/mnt/resource/swapfile",
        ),
        "swap file",
        "it holds what was in memory: keys and passwords too",
    ),
    *(
        Rule((f"{folder}/**",), "cache of the package manager", STALE, below=folder, fails=False)
        for folder in (
            "/var/lib/apt/lists",
            "/var/cache/apt",
            "/var/cache/dnf",
            "/var/cache/yum",
            "/var/cache/PackageKit",
        )
    ),
    Rule(("/root/.cache/**",), "cache of a tool", STALE, below="/root/.cache", fails=False),
)
