"""What axe-core finds wrong with a page for people who do not see it, or not well."""

from importlib.resources import files
from typing import Any, Final

from playwright.async_api import Page

_AXE: Final = files("axe_playwright_python").joinpath("axe.min.js")

_FINDINGS: Final = """async () => (await axe.run()).violations
  .filter(({ impact }) => impact === 'serious' || impact === 'critical')
  .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`)"""


async def serious_findings(page: Page) -> list[Any]:
    """What is serious or critical."""
    await page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = await page.evaluate(_FINDINGS)
    assert isinstance(found, list)
    return found
