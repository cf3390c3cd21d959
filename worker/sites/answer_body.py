"""The body of a shop's answer, within limits of size, pieces and time."""

import asyncio

import httpx

from worker.sites.port import SiteError

MAX_PIECES = 20_000
"""Each piece costs tens of microseconds, however small: a page of 4 MiB could come in as many pieces."""


async def read_body(
    response: httpx.Response, *, seconds: float, max_bytes: int
) -> tuple[bytes, SiteError | httpx.HTTPError | None]:
    """Return what has come of a body, and why it is not whole, if it is not."""
    body, pieces = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in response.aiter_raw():
                body += piece
                pieces += 1
                if len(body) > max_bytes:
                    del body[max_bytes:]
                    return bytes(body), SiteError(f"the shop's answer is larger than {max_bytes} bytes")
                if pieces > MAX_PIECES:
                    return bytes(body), SiteError(f"the shop's answer comes in more than {MAX_PIECES} pieces")
    except TimeoutError:
        return bytes(body), SiteError(f"the shop's answer is not whole after {seconds:.1f} s")
    except httpx.HTTPError as error:
        return bytes(body), error
    finally:
        await response.aclose()
    return bytes(body), None
