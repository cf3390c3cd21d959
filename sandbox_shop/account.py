"""The pages of the account: login, overview, order list and order detail."""

from starlette.responses import Response
from starlette.routing import Route

from sandbox_shop.orders import PAYMENT_METHODS, STAGE_LABELS, STAGES_IN_ORDER, Stage
from sandbox_shop.shop import Shop
from sandbox_shop.web import SESSION_COOKIE, Visit, step


def routes(shop: Shop) -> list[Route]:
    """Return the routes of this part."""
    return [
        Route("/login", step(shop, "login_page", _login_page), methods=["GET"]),
        Route("/login", step(shop, "login", _login), methods=["POST"]),
        Route("/account", step(shop, "account", _account, needs_login=True), methods=["GET"]),
        Route("/account/orders", step(shop, "order_list", _orders, needs_login=True), methods=["GET"]),
        Route("/account/orders/detail", step(shop, "order_detail", _detail, needs_login=True), methods=["GET"]),
    ]


async def _login_page(visit: Visit) -> Response:
    return visit.page("login.html", refusal=None)


async def _login(visit: Visit) -> Response:
    session_id = visit.shop.log_in(visit.form.one("username"), visit.form.one("password"))
    if session_id is None:
        refusal = "ユーザIDまたはパスワードが正しくないか、追加の本人確認が必要です"
        return visit.page("login.html", 401, refusal=refusal)
    response = visit.go_to("/account")
    response.set_cookie(SESSION_COOKIE, session_id, httponly=True, samesite="lax", path="/")
    return response


async def _account(visit: Visit) -> Response:
    return visit.page("account.html")


async def _orders(visit: Visit) -> Response:
    orders = visit.shop.visible_orders(visit.account or "")
    size = visit.shop.settings.orders_per_page
    page_count = max(1, -(-len(orders) // size))
    text = visit.query("page", "1")
    page = min(max(int(text), 1), page_count) if text.isascii() and text.isdigit() and len(text) < 6 else 1  # noqa: PLR2004
    shown = orders[(page - 1) * size : page * size]
    state = {
        "orderListData": {
            "page": page,
            "pageCount": page_count,
            "totalCount": len(orders),
            "orders": [order.to_list_entry(visit.base_url) for order in shown],
        }
    }
    return visit.page("orders.html", orders=shown, page=page, page_count=page_count, state=state, labels=STAGE_LABELS)


async def _detail(visit: Visit) -> Response:
    number = visit.query("order_number")
    order = visit.shop.order_of(visit.account or "", number)
    if order is None or order.visible_at > visit.shop.now():
        return visit.page("order_missing.html", 404, number=number)
    stages = (Stage.ACCEPTED, Stage.CANCELLED) if order.stage is Stage.CANCELLED else STAGES_IN_ORDER
    return visit.page(
        "order_detail.html",
        order=order,
        stages=[
            (stage.value, STAGE_LABELS[stage], stages.index(stage) - stages.index(order.stage)) for stage in stages
        ],
        state={"orderDetailData": order.to_list_entry(visit.base_url)},
        payment_label=PAYMENT_METHODS[order.quote.payment_method],
    )
