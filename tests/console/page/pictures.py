"""python -m tests.console.page.pictures FOLDER: take screenshots of the page, with traffic of all protocols.

For changes of the page: each view and dialog at 1280 and 400 px, light and dark. With `--docs` those of the
documentation (`make pictures`): the traffic runs for a quarter of an hour, so that plots have data, and the analytics
job makes its report of that.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.console.page import demo_traffic
from tests.console.page.browsing import PATIENCE_MS, VIEWS, show
from tests.console.page.demo_stack import DemoStack, demo_stack
from tests.console.page.picture_list import CHANGES, DIALOGS, PICTURES, Picture
from tests.console.page.scene import ring_node, ring_settings
from tests.ring.links.live import free_udp_port

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
# seconds until pictures are taken; for the documentation: the range of the plots
TRAFFIC_S = {False: 60.0, True: 900.0}
REPORT_S = 75.0  # before the job starts
COLOURS = 256  # of a picture: a third of the octets, without a visible difference
SIGN_IN = "sessionStorage.setItem('penstock.token', '{}')"


async def main(folder: Path, wanted: list[Picture], traffic_s: float) -> None:
    ended = asyncio.current_task()
    assert ended is not None
    # stop all its processes, as Ctrl-C does
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.cancel)
    with tempfile.TemporaryDirectory() as data:
        async with running_stack(Path(data)) as place, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            await asyncio.sleep(max(0.0, traffic_s - REPORT_S))
            await demo_traffic.send_user_requests(place)
            async with asyncio.TaskGroup() as group:
                group.create_task(report(place, Path(data)))
                group.create_task(asyncio.sleep(min(traffic_s, REPORT_S)))
            await demo_traffic.redrive_slowly(place)
            await demo_traffic.wait_for_history(place)
            for picture in wanted:
                await take(browser, place, folder, picture)
            await browser.close()


@asynccontextmanager
async def running_stack(folder: Path) -> AsyncIterator[DemoStack]:
    """Run a `penstock up` whose ring has two more nodes in processes of their own."""
    beacons = free_udp_port()
    node = ring_settings("north", beacons).items()
    ring = {
        f"PENSTOCK_EDGES__RING__NODE__{name.replace('.', '__').upper()}": str(value) for name, value in node
    }
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(demo_stack(folder, {**ring, **demo_traffic.settings()}))
        for name in ("east", "south"):
            await stack.enter_async_context(ring_node(place.url, folder, name, beacons))
        await place.declare(demo_traffic.QUEUES, "cli")
        await stack.enter_async_context(demo_traffic.run_traffic(place))
        await place.put_by_cast()
        yield place


async def report(place: DemoStack, folder: Path) -> None:
    """Run the analytics job."""
    words = ["--store", place.url, "--output", str(folder / "analytics"), "--driver-memory", "512m"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.analytics", *words, "--master", "local[1]"),
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()[-2000:]


async def take(browser: Browser, place: DemoStack, folder: Path, picture: Picture) -> None:
    how = {"color_scheme": picture.scheme, "reduced_motion": "reduce"}
    size = {"width": picture.width, "height": picture.height}
    page: Page = await browser.new_page(viewport=size, **how)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_MS)
    await page.add_init_script(SIGN_IN.format(demo_traffic.token(picture.who)))
    await show(page, place.address, picture.route, VIEWS[picture.route.partition("?")[0]])
    if picture.name in CHANGES:
        await CHANGES[picture.name](page)
    await page.wait_for_function("document.fonts.status === 'loaded'")
    await expect(page.locator(".plot .canvas:not(:has(canvas))")).to_have_count(0)
    await expect(page.locator("main .problem")).to_have_count(0)
    taken = await page.screenshot(full_page=picture.is_whole)
    (folder / picture.file).write_bytes(small(taken))
    await page.close()


def small(png: bytes) -> bytes:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    out = io.BytesIO()
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--only", metavar="NAME", help="those of this name, such as jobs")
    parser.add_argument("--grown", type=float, metavar="SECONDS", help="how long the traffic has gone on")
    said = parser.parse_args()
    said.folder.mkdir(parents=True, exist_ok=True)
    every = [
        Picture(each.replace("/", "-"), each, *how, is_whole=how[0] == 400)
        for each, *how in product(VIEWS, WIDTHS, SCHEMES)
    ]
    every += [Picture(name, DIALOGS[name][0], *how) for name, *how in product(DIALOGS, WIDTHS, SCHEMES)]
    chosen = [each for each in (PICTURES if said.docs else every) if said.only in (None, each.name)]
    try:
        asyncio.run(main(said.folder, chosen, said.grown or TRAFFIC_S[said.docs]))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
