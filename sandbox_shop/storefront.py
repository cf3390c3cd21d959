"""The pages up to the cart: start page, items, cart."""

from starlette.responses import Response
from starlette.routing import Route

from sandbox_shop.catalogue import SHOP_CODE, Product
from sandbox_shop.shop import Shop, ShopError
from sandbox_shop.web import Visit, step


def routes(shop: Shop) -> list[Route]:
    """Return the routes of this part."""
    return [
        Route("/", step(shop, "home", _home), methods=["GET"]),
        Route("/item/{shop_code}/{code}/", step(shop, "item", _item), methods=["GET"]),
        Route("/cart", step(shop, "cart", _cart, needs_login=True), methods=["GET"]),
        Route("/cart/add", step(shop, "cart_add", _add, needs_login=True), methods=["POST"]),
        Route("/cart/remove", step(shop, "cart_remove", _remove, needs_login=True), methods=["POST"]),
    ]


async def _home(visit: Visit) -> Response:
    return visit.page("home.html", products=list(visit.shop.products.values()))


def _product(visit: Visit) -> Product | None:
    params = visit.request.path_params
    return visit.shop.products.get(params["code"]) if params["shop_code"] == SHOP_CODE else None


async def _item(visit: Visit) -> Response:
    product = _product(visit)
    if product is None:
        return visit.page("not_found.html", 404, what="商品")
    return visit.page("item.html", product=product)


async def _cart(visit: Visit) -> Response:
    return _cart_page(visit)


def _cart_page(visit: Visit, status: int = 200, refusal: str | None = None) -> Response:
    lines = visit.shop.cart(visit.account or "")
    subtotal = sum(line.total_yen for line in lines)
    return visit.page("cart.html", status, lines=lines, subtotal=subtotal, refusal=refusal)


async def _add(visit: Visit) -> Response:
    variant_id = visit.form.one("variant_id") or None
    choice = visit.form.every("choice")
    try:
        visit.shop.add_to_cart(
            visit.account or "", visit.form.one("code"), variant_id, choice, visit.form.number("quantity", 0)
        )
    except ShopError as refusal:
        return _cart_page(visit, 409, str(refusal))
    return visit.go_to("/cart")


async def _remove(visit: Visit) -> Response:
    visit.shop.remove_from_cart(visit.account or "", visit.form.number("line", -1))
    return visit.go_to("/cart")
