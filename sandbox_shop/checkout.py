"""The pages from the confirmation to the payment."""

from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from sandbox_shop.orders import PAYMENT_METHODS, Order, PaymentState
from sandbox_shop.shop import Shop, ShopError
from sandbox_shop.web import Visit, step

CODE_DIGITS = 6


def routes(shop: Shop) -> list[Route]:
    """Return the routes of this part."""
    return [
        Route("/order/confirm", step(shop, "confirm", _confirm, needs_login=True), methods=["GET"]),
        Route("/order/submit", step(shop, "submit", _submit, needs_login=True), methods=["POST"]),
        Route("/order/thanks", step(shop, "thanks", _thanks, needs_login=True), methods=["GET"]),
        Route("/payment", step(shop, "payment_page", _payment, needs_login=True), methods=["GET"]),
        Route("/payment", step(shop, "pay", _pay, needs_login=True), methods=["POST"]),
        Route("/payment/result", step(shop, "payment_result", _result, needs_login=True), methods=["GET"]),
        Route("/payment/challenge", step(shop, "challenge", _challenge, needs_login=True), methods=["GET"]),
        Route("/payment/challenge", step(shop, "challenge_answer", _answer, needs_login=True), methods=["POST"]),
    ]


def _order(visit: Visit) -> Order | None:
    number = visit.form.one("order_number") or visit.query("order_number")
    return visit.shop.order_of(visit.account or "", number)


def _with_number(path: str, order: Order) -> str:
    return f"{path}?{urlencode({'order_number': order.number})}"


async def _confirm(visit: Visit) -> Response:
    try:
        token, quote = visit.shop.quote(visit.account or "", visit.query("payment_method", "card"))
    except ShopError as refusal:
        return visit.page("refusal.html", 409, message=str(refusal))
    return visit.page("confirm.html", quote=quote, token=token, payment_label=PAYMENT_METHODS[quote.payment_method])


async def _submit(visit: Visit) -> Response:
    try:
        order = visit.shop.submit(visit.account or "", visit.form.one("token"))
    except ShopError as refusal:
        return visit.page("refusal.html", 409, message=str(refusal))
    return visit.go_to(_with_number("/order/thanks", order))


async def _thanks(visit: Visit) -> Response:
    if (order := _order(visit)) is None:
        return visit.page("not_found.html", 404, what="注文")
    return visit.page("thanks.html", order=order, payment_label=PAYMENT_METHODS[order.quote.payment_method])


async def _payment(visit: Visit) -> Response:
    if (order := _order(visit)) is None:
        return visit.page("not_found.html", 404, what="注文")
    if order.payment is PaymentState.PAID or order.slip_number:
        return visit.page("payment_result.html", order=order)
    return visit.page("payment.html", order=order, payment_label=PAYMENT_METHODS[order.quote.payment_method])


async def _pay(visit: Visit) -> Response:
    if (order := _order(visit)) is None:
        return visit.page("not_found.html", 404, what="注文")
    try:
        visit.shop.pay(order)
    except ShopError as refusal:
        return visit.page("refusal.html", 409, message=str(refusal))
    return visit.go_to(_with_number("/payment/challenge" if order.challenge else "/payment/result", order))


async def _result(visit: Visit) -> Response:
    if (order := _order(visit)) is None:
        return visit.page("not_found.html", 404, what="注文")
    return visit.page("payment_result.html", order=order)


async def _challenge(visit: Visit) -> Response:
    if (order := _order(visit)) is None or order.challenge is None:
        return visit.page("not_found.html", 404, what="本人認証")
    return visit.page("challenge.html", order=order, refusal=None)


async def _answer(visit: Visit) -> Response:
    """Any six digits pass: who sits there is a person, which is all that the shop wants to know."""
    if (order := _order(visit)) is None or order.challenge is None:
        return visit.page("not_found.html", 404, what="本人認証")
    code = visit.form.one("code")
    if len(code) != CODE_DIGITS or not code.isdigit():
        return visit.page("challenge.html", 422, order=order, refusal="認証コードは6桁の数字です")
    visit.shop.take_payment(order)
    return visit.go_to(_with_number("/payment/result", order))
