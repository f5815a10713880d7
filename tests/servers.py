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


# --------------------------------------------------------------------------------------
# Kafka, from Maven artifacts

BROKER = "4.1.2"
# What Spark needs to speak with Kafka. The connector should be that of the Spark in use; these
# are the newest that every mirror has, and they do.
CONNECTOR = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": "4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}


def maven_jars(name, artifacts, alone):
    """A folder with the jars of these artifacts, and unless `alone` of what they need."""
    mvn = program("mvn")
    if mvn is None:
        pytest.skip("Maven is not installed (Debian, Ubuntu: apt install maven)")
    folder = Path(__file__).parents[1] / "build" / "jars" / name
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_pom(artifacts, alone))
    goal = "dependency:copy-dependencies"
    command = [mvn, "-B", "-q", "-f", folder / "pom.xml", goal, "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            [*command, f"-DoutputDirectory={folder}"], capture_output=True, text=True, timeout=240
        )
    except subprocess.TimeoutExpired:
        pytest.skip("Maven did not bring the jars of Kafka in time")
    if done.returncode:
        pytest.skip(f"Maven could not bring the jars of Kafka: {done.stdout.strip()[:300]}")
    (folder / "complete").touch()
    return folder


def _pom(artifacts, alone):
    exclusion = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    without = f"<exclusions>{exclusion}</exclusions>" if alone else ""
    dependencies = ""
    for name, version in artifacts.items():
        group, _, artifact = name.partition(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{without}</dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>skytide</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def kafka_connector():
    """The jars for `spark.jars`."""
    return ",".join(map(str, maven_jars("connector", CONNECTOR, alone=True).glob("*.jar")))


@contextmanager
def kafka():
    """The address of a new broker: one node, its own controller, on this machine only."""
    java = program("java")
    if java is None:
        pytest.skip("Java is not installed")
    jars = maven_jars("broker", {"org.apache.kafka:kafka_2.13": BROKER}, alone=False)
    folder = Path(tempfile.mkdtemp(prefix="skytide-kafka-"))
    try:
        port, control = free_port(), free_port()
        (folder / "server.properties").write_text(_node(folder, port, control))
        call = [java, "-Xmx512m", "-cp", f"{jars}/*"]
        uuid = "c2t5dGlkZS10ZXN0cy0wMQ"
        make = ["kafka.tools.StorageTool", "format", "-t", uuid, "-c", folder / "server.properties"]
        subprocess.run([*call, *map(str, make)], check=True, capture_output=True, timeout=60)
        start = [*call, "kafka.Kafka", folder / "server.properties"]
        with running(start, lambda: listens(port), folder / "broker.log"):
            yield f"127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _node(folder, port, control):
    return f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.partitions=2
"""
