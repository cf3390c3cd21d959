"""What the shop keeps of an order, and what a cart line is."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from enum import StrEnum
from typing import Any

from sandbox_shop.catalogue import SHOP_ID, SHOP_NAME

JST = timezone(timedelta(hours=9), "JST")
FREE_SHIPPING_FROM_YEN = 3980
SHIPPING_YEN = 550
PAYMENT_METHODS = {
    "card": "クレジットカード",
    "card_3ds": "クレジットカード 本人認証サービス",
    "card_sms": "クレジットカード SMS認証",
    "convenience_store": "コンビニ前払い",
}
"""Ways to pay, with the label that the pages show."""


class Stage(StrEnum):
    """How far the shop is with an order; the value is the shop's stage code."""

    ACCEPTED = "ACCEPTED"
    PREPARING = "PREPARING"
    SHIPPED = "SHIPPED"
    DELIVERED = "DELIVERED"
    CANCELLED = "CANCELLED"


STAGE_LABELS = {
    Stage.ACCEPTED: "注文受付",
    Stage.PREPARING: "発送準備",
    Stage.SHIPPED: "出荷",
    Stage.DELIVERED: "配達完了",
    Stage.CANCELLED: "キャンセル",
}
STAGES_IN_ORDER = (Stage.ACCEPTED, Stage.PREPARING, Stage.SHIPPED, Stage.DELIVERED)


class PaymentState(StrEnum):
    """Whether an order is paid. WAITING: the buyer has chosen how, and must still do something."""

    UNPAID = "unpaid"
    WAITING = "waiting"
    PAID = "paid"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a cart, a confirmation or an order, with the unit price at that time."""

    item_id: int
    code: str
    name: str
    path: str
    variant_id: str | None
    variant_label: str | None
    choice: tuple[str, ...]
    quantity: int
    unit_price_yen: int

    @property
    def total_yen(self) -> int:
        """Unit price times quantity."""
        return self.unit_price_yen * self.quantity


@dataclass(frozen=True, slots=True)
class Quote:
    """What a confirmation page promises: lines, amounts and the way to pay. An order is taken exactly as quoted."""

    account: str
    lines: tuple[Line, ...]
    payment_method: str

    @property
    def subtotal_yen(self) -> int:
        """The sum of the lines."""
        return sum(line.total_yen for line in self.lines)

    @property
    def shipping_yen(self) -> int:
        """Postage, free from 3,980 yen."""
        return 0 if self.subtotal_yen >= FREE_SHIPPING_FROM_YEN else SHIPPING_YEN

    @property
    def payable_yen(self) -> int:
        """What the buyer pays."""
        return self.subtotal_yen + self.shipping_yen


@dataclass(slots=True)
class Order:
    """An order. `visible_at`: from when list and detail show it. `placed_here`: it came in by a submit."""

    number: str
    quote: Quote
    placed_at: datetime
    visible_at: datetime
    placed_here: bool = True
    stage: Stage = Stage.ACCEPTED
    payment: PaymentState = PaymentState.UNPAID
    challenge: str | None = None
    slip_number: str | None = None
    pay_deadline: datetime | None = None
    payments: int = 0
    date_hidden: bool = False

    @property
    def placed_at_jst(self) -> datetime:
        """When it was placed, in the shop's time zone."""
        return self.placed_at.astimezone(JST)

    def three_days_from_now(self, now: datetime) -> datetime:
        """Return the end of the third day from now, shop time: until then a payment slip is good."""
        return datetime.combine(now.astimezone(JST).date() + timedelta(days=3), time(23, 59), JST)

    def to_list_entry(self, base_url: str) -> dict[str, Any]:
        """Return the order as the pages embed it in `__INITIAL_STATE__`."""
        return {
            "orderNumber": self.number,
            "orderDate": None if self.date_hidden else self.placed_at_jst.isoformat(timespec="seconds"),
            "shop": {"shopId": SHOP_ID, "shopName": SHOP_NAME},
            "items": [
                {
                    "itemId": line.item_id,
                    "itemName": line.name,
                    "itemUrl": base_url + line.path,
                    "variantId": line.variant_id,
                    "choice": list(line.choice),
                    "quantity": line.quantity,
                    "unitPrice": line.unit_price_yen,
                }
                for line in self.quote.lines
            ],
            "totalPrice": self.quote.payable_yen,
            "shippingFee": self.quote.shipping_yen,
            "paymentMethod": self.quote.payment_method,
            "paymentStatus": self.payment.value,
            "stageCode": self.stage.value,
            "stageLabel": STAGE_LABELS[self.stage],
        }
