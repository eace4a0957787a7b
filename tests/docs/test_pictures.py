"""The pictures of the documentation show what a person sees today.

``MEMORY_REGENERATE_GOLDEN=1 pytest tests/docs/test_pictures.py`` draws them anew, and the PNGs
beside them where ``chromium`` is installed.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from memory import InMemoryStore, LegalHoldError, Memory, Receipt, Record, TenantMemory
from memory.stores.postgres import PostgresStore
from servers import Database
from steady import steady
from terminals import environment, terminal

ASHA, VIKRAM, LI = "customer:asha", "customer:vikram", "customer:li"
MOST_BYTES = 150_000
COLUMNS = 100
BREADTH = 900
REGENERATE = "MEMORY_REGENERATE_GOLDEN" in os.environ
PAPERS = {"light": ("#ffffff", "#1f2328"), "dark": ("#0d1117", "#e6edf3")}
# Rich's own format fetches its font.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono"
)
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 12px; font: 13px system-ui, sans-serif; background: {paper};
    color: {ink} }}
table {{ border-collapse: collapse }} td, th {{ padding: 5px 10px }}
tbody tr:nth-child(odd) {{ background: rgba(127, 127, 127, .12) }} caption {{ padding: 5px 10px }}
</style>{body}"""


class Story:
    """Asha and Vikram bought a kettle; Li wants her parcels late."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
        self.labels: dict[Any, str] = {}
        self.hers: Sequence[Record] = ()
        self.down = False

    name = "vectors"

    async def purge(self, artefact_ids: Sequence[str]) -> int:
        if self.down:
            raise OSError
        return len(artefact_ids)

    def memory(self) -> TenantMemory:
        store = InMemoryStore(clock=lambda: self.now)
        memory = Memory(
            store, clock=lambda: self.now, indexes=[self], subject_pepper="from a secret manager"
        )
        return memory.for_tenant("shop")

    async def tell(self, shop: TenantMemory) -> None:
        async def told(text: str, *people: str) -> Record:
            record = (await shop.remember(text=text, subject_keys=people)).record
            self.labels[record.record_id] = text
            return record

        async def made(kind: str, text: str, *sources: Record) -> Record:
            record = (await shop.derive(kind=kind, text=text, sources=sources)).record
            self.labels[record.record_id] = text
            return record

        kettle = await told("Asha's blue kettle arrived cracked", ASHA)
        brother = await told("Asha and Vikram are siblings", ASHA, VIKRAM)
        parcels = await told("Li wants parcels after six", LI)
        refund = await made("summary", "Refund for a cracked kettle", kettle, brother)
        evening = await made("summary", "Li is home in the evening", parcels)
        await made("digest", "One refund, one late parcel", refund, evening)
        self.hers = (kettle, brother, refund)


async def drawings() -> dict[str, str]:
    """The lineage before and after, and what an erasure leaves behind, by file name."""
    story = Story()
    shop = story.memory()
    await story.tell(shop)
    for number, source in enumerate(story.hers):
        await shop.register_artefact(adapter="vectors", artefact_id=f"{number}", sources=source)
    before = (await shop.lineage(subject_key=ASHA)).svg(labels=story.labels)
    await shop.hold(subject_key=ASHA)
    story.now += timedelta(days=1, hours=2)
    with pytest.raises(LegalHoldError):
        await shop.forget(subject_key=ASHA)
    story.now += timedelta(days=20, minutes=14)
    story.down = True
    await shop.release(subject_key=ASHA)
    after = (await shop.lineage(subject_key=LI)).svg(labels=story.labels)
    story.now += timedelta(minutes=40)
    story.down = False
    await shop.purge_outstanding()
    story.now += timedelta(days=1)
    await shop.forget(subject_key=ASHA, block_future=True)
    whole = (await shop.timeline(subject_key=ASHA)).svg()
    return {"before": before, "after": after, "timeline": whole}


async def receipt() -> Receipt:
    story = Story()
    shop = story.memory()
    await story.tell(shop)
    return await shop.forget(subject_key=ASHA)


def committed(root: Path, name: str) -> Path:
    return root / "docs" / "images" / name


async def test_the_drawings_are_those_of_today(root: Path) -> None:
    pictures = await drawings()
    same = steady(times=False)
    found = {f"{name}.svg": same(picture) for name, picture in pictures.items()}
    if REGENERATE:
        for name, picture in found.items():
            committed(root, name).write_text(picture + "\n", encoding="utf-8")
            as_png(committed(root, name))
        shown = (await receipt())._repr_html_()
        for paper in PAPERS:
            file = committed(root, f"receipt-{paper}.png")
            photographed(same(shown), file, "540,400", paper=paper, scale=2)
    for name, picture in found.items():
        assert committed(root, name).read_text(encoding="utf-8") == picture + "\n", name


async def seen(database: Database, *arguments: str, answer: str = "") -> str:
    """What a terminal of 100 columns shows of a command, with its colours."""
    with terminal(*arguments, env=environment(database.app_url), columns=COLUMNS) as shown:
        if answer:
            shown.expect("[y/N]: ")
            shown.type(answer)
        assert shown.end() == 0
    command = f"\x1b[1m$ memory {' '.join(arguments)}\x1b[0m\n"
    return command + shown.raw.decode().replace("\r\n", "\n")


def as_svg(ansi: str, name: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(ansi))
    return console.export_svg(title="memory", code_format=FORMAT, unique_id=name)


def words(picture: str) -> list[str]:
    """The texts in an SVG; the looks of a terminal are its program's."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", picture, flags=re.DOTALL)
    return [html.unescape(text).replace("\xa0", " ").rstrip() for text in found]


async def test_the_terminals_are_those_of_today(root: Path, database: Database) -> None:
    async with Memory(PostgresStore(database.app_url), subject_pepper="pepper") as memory:
        await Story().tell(memory.for_tenant("shop"))
    same = steady()
    for name, arguments, answer in (
        ("forget", ("forget", "shop", ASHA), "y"),
        ("history", ("history", "shop"), ""),
    ):
        shown = await seen(database, *arguments, answer=answer)
        picture, file = same(as_svg(shown, name)), committed(root, f"{name}.svg")
        if REGENERATE:
            file.write_text(picture, encoding="utf-8")
            as_png(file)
        assert words(file.read_text(encoding="utf-8")) == words(picture), name


def test_pictures_are_small_and_fetch_nothing(root: Path) -> None:
    files = list(committed(root, "").iterdir())
    assert {file.suffix for file in files} == {".png", ".svg"}
    for file in files:
        assert file.stat().st_size < MOST_BYTES, file.name
        if file.suffix == ".svg":
            assert not re.search(r"(?:href|src)=|url\((?!#)|@import", file.read_text("utf-8"))


def as_png(file: Path) -> None:
    """Draw the PNG beside an SVG, at most as broad as a page."""
    box = re.search(r"viewBox='?\"?0 0 ([\d.]+) ([\d.]+)", file.read_text(encoding="utf-8"))
    assert box is not None
    across = min(BREADTH, round(float(box[1])))
    down = round(across * float(box[2]) / float(box[1]))
    body = f'<style>body {{ padding: 0 }}</style><img src="file://{file}" width="{across}">'
    photographed(body, file.with_suffix(".png"), f"{across},{down}")


def photographed(body: str, file: Path, size: str, *, paper: str = "light", scale: int = 1) -> None:
    program = shutil.which("chromium")
    if program is None:
        return
    ground, ink = PAPERS[paper]
    # 1: the reader's system is light.
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size}"]
    options += ["--blink-settings=preferredColorScheme=1", f"--screenshot={file}"]
    options += [f"--force-device-scale-factor={scale}", "--allow-file-access-from-files"]
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write(PAGE.format(paper=ground, ink=ink, body=body))
        page.flush()
        subprocess.run([program, *options, f"file://{page.name}"], check=True, capture_output=True)
