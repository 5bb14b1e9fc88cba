"""What is in the packages that are published. The page is not in git, which builders go by."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import adk_stream_protocol

ROOT = Path(__file__).parent.parent
PAGE = "adk_stream_protocol/demo/page"
FILES = {"index.html", "THIRD_PARTY_NOTICES.txt", "assets/index-1.js", "assets/font.woff2"}


def build(target: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, with a page as small as can be."""
    checkout = tmp_path_factory.mktemp("checkout") / "project"
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("page", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for name in FILES:
        file = checkout / "src" / PAGE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (checkout / "page" / "node_modules" / "react").mkdir(parents=True)
    (checkout / "page" / "node_modules" / "react" / "index.js").write_text("")
    (checkout / ".ci").mkdir()
    (checkout / ".ci" / "run").write_text("")
    return checkout


def page_in(names: list[str], root: str) -> set[str]:
    return {name.removeprefix(f"{root}/") for name in names if name.startswith(root) and not name.endswith("/")}


def test_the_page_is_in_the_source_archive_and_in_the_wheel_that_is_built_from_it(
    checkout: Path, tmp_path: Path
) -> None:
    archive = build("sdist", checkout, tmp_path / "sdist")
    with tarfile.open(archive) as sources:
        names = sources.getnames()
        sources.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert page_in(names, f"{unpacked.name}/src/{PAGE}") == FILES
    assert not [name for name in names if "node_modules" in name or ".ci" in name]
    wheel = build("wheel", unpacked, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as packed:
        assert page_in(packed.namelist(), PAGE) == FILES


def test_the_wheel_has_the_package_the_licence_and_the_command_and_nothing_else(checkout: Path, tmp_path: Path) -> None:
    wheel = build("wheel", checkout, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (entry_points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        assert "adk-stream = adk_stream_protocol.cli:main" in packed.read(entry_points).decode()
    assert page_in(names, PAGE) == FILES
    assert {"adk_stream_protocol/py.typed", "adk_stream_protocol/demo/web_page.py"} <= set(names)
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"adk_stream_protocol"}


def test_both_archives_pass_the_checks_of_package_indexes(checkout: Path, tmp_path: Path) -> None:
    built = [str(build(target, checkout, tmp_path / target)) for target in ("sdist", "wheel")]
    for check in (["twine", "check", "--strict", *built], ["check_wheel_contents", built[1]]):
        checked = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_works_where_it_was_installed_by_its_file_name(checkout: Path, tmp_path: Path) -> None:
    wheel = build("wheel", checkout, tmp_path / "wheel")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    # Without a network: what it depends on is that of this environment, behind what is installed in the new one.
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True)
    command = [str(environment / "bin" / "adk-stream"), "--version"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert told.startswith(f"adk-stream {adk_stream_protocol.__version__} ")


def test_both_packages_have_the_version_that_the_changelog_begins_with() -> None:
    version = adk_stream_protocol.__version__
    for file in ("client/package.json", "client/package-lock.json"):
        assert json.loads((ROOT / file).read_text())["version"] == version, file
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
