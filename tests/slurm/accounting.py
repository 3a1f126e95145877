"""Accounting for tests/slurm/loopback: slurmdbd, and a MariaDB that only it can reach.

The database listens on a socket in the cluster's folder, which is its user's alone, and on no port.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

PACKAGES = "apt-get install slurmdbd mariadb-server"

CONFIGURATION = """\
AuthType=auth/none
CommunicationParameters=NoInAddrAny
DbdHost={host}
DbdPort={port}
SlurmUser={user}
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""

# Only what slurmdbd asks for (innodb), and what a database of minutes can do without.
SETTINGS = ["--skip-networking", "--innodb-lock-wait-timeout=900", "--innodb-buffer-pool-size=64M"]
SETTINGS += ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"]


def lines(port: int) -> list[str]:
    """What slurm.conf says of it."""
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={socket.gethostname()}",
        f"AccountingStoragePort={port}",
    ]


def configuration(folder: Path, port: int) -> Path:
    """The file slurmdbd.conf beside slurm.conf; slurmdbd refuses one that others can read."""
    file = folder / "slurmdbd.conf"
    user = pwd.getpwuid(os.getuid()).pw_name
    file.touch(mode=0o600)
    file.write_text(
        CONFIGURATION.format(folder=folder, host=socket.gethostname(), port=port, user=user)
    )
    return file


def database(folder: Path, program: Callable[[str], str]) -> list[str]:
    """The command of a new MariaDB in the folder, with an empty database for slurmdbd.

    Where there is none slurmdbd makes it, and connects again; with MariaDB's client of 11.8.9 it
    then ends, as that takes no column in what is asked over a connection that has failed before.
    """
    folder.chmod(0o700)  # its root needs no password
    (folder / "database.sql").write_text("CREATE DATABASE slurm;\n")
    user = f"--user={pwd.getpwuid(os.getuid()).pw_name}"
    made = subprocess.run(
        [
            *(program("mariadb-install-db"), "--no-defaults", user, f"--datadir={folder}/database"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ],
        capture_output=True,
        text=True,
    )
    (folder / "mariadb-install-db.out").write_text(made.stdout + made.stderr)
    place = [f"--datadir={folder}/database", f"--socket={folder}/database.socket"]
    log = f"--log-error={folder}/mariadbd.log"
    first = f"--init-file={folder}/database.sql"
    return [program("mariadbd"), "--no-defaults", user, *place, first, log, *SETTINGS]
