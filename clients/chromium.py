"""Runs the checks of a built page in Chromium, as if the gateway had served it: `python chromium.py FOLDER`.

Only the page's own files are put under the gateway's address; its calls go to the gateway over the network.
"""

import os
import sys
from pathlib import Path

from playwright.sync_api import Route, sync_playwright

from worker.evidence.screenshots import find_chromium

PLACE = "/page-of-the-clients/"


def main() -> int:
    """Prints what failed and the closing line; 1 if anything failed."""
    folder, origin = Path(sys.argv[1]), os.environ["ORDER_GATEWAY_HTTP"]

    def serve(route: Route) -> None:
        route.fulfill(path=folder / (route.request.url.rpartition(PLACE)[2] or "index.html"))

    flags = ["--disable-dev-shm-usage", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=flags, chromium_sandbox=os.geteuid() != 0
        )
        page = browser.new_page()
        page.route(f"{origin}{PLACE}**", serve)
        page.goto(f"{origin}{PLACE}")
        page.wait_for_function("window.checkGateway !== undefined")
        told = page.evaluate(
            "([token, shop]) => window.checkGateway(token, shop)",
            [os.environ["ORDER_GATEWAY_TOKEN"], os.environ["ORDER_GATEWAY_SHOP"]],
        )
        browser.close()
    for failure in told["failures"]:
        print(f"failed: {failure}", file=sys.stderr)
    print(told["summary"])
    return 1 if told["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
