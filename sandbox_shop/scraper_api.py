"""Item data as JSON, in the shape of the scraping service: `POST /api/item_detail` with a bearer token.

The request names the item as `{"item_url": "…"}`. Known of the answer's shape is only that it has a `purchase` block
with the variants.
"""

import json
import secrets
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox_shop.catalogue import Product
from sandbox_shop.shop import Shop
from sandbox_shop.web import Visit, step


def routes(shop: Shop) -> list[Route]:
    """Return the route of this part."""
    return [Route("/api/item_detail", step(shop, "item_detail", _item_detail), methods=["POST"])]


async def _item_detail(visit: Visit) -> Response:
    if not _authorised(visit.request, visit.shop.settings.scraper_token):
        return _refusal(401, "the bearer token is missing or wrong")
    try:
        item_url = json.loads(visit.form.body)["item_url"]
        path = urlsplit(item_url).path
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _refusal(422, "item_url is missing")
    product = next((product for product in visit.shop.products.values() if product.path == path), None)
    if product is None:
        return _refusal(404, "no such item")
    data = {"item_url": item_url, "item_name": product.name, "purchase": _purchase(product)}
    return JSONResponse({"success": True, "msg": "", "code": 0, "data": data})


def _authorised(request: Request, token: str) -> bool:
    given = request.headers.get("authorization", "")
    return secrets.compare_digest(given.encode(), f"Bearer {token}".encode())


def _refusal(code: int, message: str) -> Response:
    return JSONResponse({"success": False, "msg": message, "code": code, "data": None}, status_code=code)


def _purchase(product: Product) -> dict[str, object]:
    return {
        "item_id": product.item_id,
        "in_stock": any(units > 0 for units in product.stock.values()),
        "options": [{"name": option.name, "choices": list(option.choices)} for option in product.options],
        "variants": [
            {
                "variant_id": variant.variant_id,
                "name": variant.label,
                "price_yen": product.price_yen,
                "stock": product.stock[variant.variant_id],
                "in_stock": product.stock[variant.variant_id] > 0,
            }
            for variant in product.variants
        ],
    }
