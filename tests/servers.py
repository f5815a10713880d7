"""Servers for tests: a real PostgreSQL and a real Kafka broker, in folders of their own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

READY_WITHIN = 30  # seconds
DIES_AFTER = "300"  # seconds; whatever becomes of the tests


def program(name, folders=()):
    places = [str(place) for folder in folders for place in sorted(Path("/").glob(folder))[::-1]]
    return shutil.which(name, path=os.pathsep.join([*places, os.environ["PATH"]]))


@contextmanager
def running(command, ready, log, **how):
    """A process that lives as long as the block, once it is ready."""
    limited = ["timeout", DIES_AFTER, *map(str, command)]
    with open(log, "wb") as file:
        process = subprocess.Popen(limited, stdout=file, stderr=subprocess.STDOUT, **how)
    try:
        until = time.monotonic() + READY_WITHIN
        while not ready():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{command[0]} did not start:\n{Path(log).read_text()[-2000:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def postgres():
    """A connection string for a new, empty server that only this machine's users can reach."""
    debian = ["usr/lib/postgresql/*/bin"]
    initdb, server = program("initdb", debian), program("postgres", debian)
    if not initdb or not server:
        pytest.skip("PostgreSQL is not installed (Debian, Ubuntu: apt install postgresql)")
    root = os.geteuid() == 0
    if root and subprocess.run(["id", "postgres"], capture_output=True).returncode:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    how = {"user": "postgres", "group": "postgres", "extra_groups": []} if root else {}
    folder = tempfile.mkdtemp(prefix="skytide-pg-")
    if root:
        shutil.chown(folder, "postgres")
    try:
        data = f"{folder}/data"
        make = [initdb, "-D", data, "-U", "skytide", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **how)
        command = [server, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        dsn = f"host={folder} user=skytide dbname=postgres"
        with running(command, lambda: _answers(dsn), f"{folder}.log", cwd=folder, **how):
            yield dsn
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        Path(f"{folder}.log").unlink(missing_ok=True)


def _answers(dsn):
    import psycopg

    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
