"""The Markdown pages of the project, and the code in them."""

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "client" / "README.md", *ROOT.glob("examples/*/*.md")]
)
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|//|<!--) ([\w./\[\]-]+\.\w+)(?: -->)?\n")


class Block(NamedTuple):
    """A block of code."""

    language: str
    code: str
    line: int
    """In its page, of the first line of code."""

    @property
    def file(self) -> str | None:
        """The name of the file that this is, if its first line is a comment that says so."""
        named = _FILE.match(self.code)
        return named[1] if named else None


def blocks_of(page: Path, *languages: str) -> Iterator[Block]:
    """In these languages, or in all."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        if not languages or found[2] in languages:
            yield Block(found[2], found[3], text.count("\n", 0, found.start()) + 2)


def run_page(page: Path, **given: Any) -> dict[str, Any]:
    """Run the Python of a page, block after block. The names that it defines; `given` are those that it leaves to its
    reader. Blocks may import the blocks above that are files."""
    names: dict[str, Any] = {"__name__": page.stem, **given}
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.filterwarnings("ignore", ".EXPERIMENTAL.", UserWarning)  # ADK's own
        for block in blocks_of(page, "python"):
            in_its_place = "\n" * (block.line - 1) + block.code
            exec(compile(in_its_place, str(page.relative_to(ROOT)), "exec", dont_inherit=True), names)
            if block.file:
                name = Path(block.file).stem
                module = ModuleType(name)
                vars(module).update({**names, "__name__": name})
                patch.setitem(sys.modules, name, module)
    return names


def text_without_code(page: Path) -> str:
    return re.sub(r"`[^`\n]+`", "``", _FENCE.sub("", page.read_text()))


def anchors_of(page: Path) -> set[str]:
    """What a link to the page may have after its `#`: the headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}
