"""What the shop sells. Prices are whole yen, tax included."""

from dataclasses import dataclass, field, replace

SHOP_ID = 306087
SHOP_CODE = "sandbox-store"
SHOP_NAME = "サンドボックス商店"


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a product, for example a colour and size."""

    variant_id: str
    label: str


@dataclass(frozen=True, slots=True)
class Option:
    """Something the buyer must choose that changes neither price nor stock, for example gift wrapping."""

    name: str
    choices: tuple[str, ...]


@dataclass(slots=True)
class Product:
    """A product. `stock` counts units by variant id; a product without variants has the single key None."""

    item_id: int
    code: str
    name: str
    description: str
    price_yen: int
    stock: dict[str | None, int]
    variants: tuple[Variant, ...] = ()
    options: tuple[Option, ...] = field(default=())
    colour: str = "#c8d8c4"

    @property
    def path(self) -> str:
        """The path of the product's page."""
        return f"/item/{SHOP_CODE}/{self.code}/"

    def variant(self, variant_id: str | None) -> Variant | None:
        """Return the variant of that id, None where there is none."""
        return next((variant for variant in self.variants if variant.variant_id == variant_id), None)

    def sells(self, variant_id: str | None) -> bool:
        """Return True if the product can be bought in this variant at all (in stock or not)."""
        return variant_id in self.stock

    def accepts(self, choice: tuple[str, ...]) -> bool:
        """Return True if `choice` names one valid choice for each option, in order."""
        return len(choice) == len(self.options) and all(
            chosen in option.choices for chosen, option in zip(choice, self.options, strict=True)
        )


_PRODUCTS = (
    Product(
        10000101,
        "sencha-100g",
        "静岡産 深蒸し煎茶 100g",
        "一番茶だけを使った深蒸し煎茶です。まろやかな甘みをお楽しみください。",
        1080,
        {None: 500},
        colour="#b9d3a4",
    ),
    Product(
        10000102,
        "tshirt-basic",
        "オーガニックコットン ベーシックTシャツ",
        "肌ざわりのよいオーガニックコットン100%。毎日着られる定番の一枚です。",
        1980,
        {"white-s": 0, "white-m": 24, "white-l": 12, "navy-m": 18, "navy-l": 0},
        variants=(
            Variant("white-s", "ホワイト / S"),
            Variant("white-m", "ホワイト / M"),
            Variant("white-l", "ホワイト / L"),
            Variant("navy-m", "ネイビー / M"),
            Variant("navy-l", "ネイビー / L"),
        ),
        colour="#c3cfe2",
    ),
    Product(
        10000103,
        "mug-named",
        "名入れマグカップ 350ml",
        "お名前を焼き付けてお届けする、贈り物に人気のマグカップです。",
        2480,
        {None: 60},
        options=(
            Option("文字色", ("ネイビー", "ゴールド", "ホワイト")),
            Option("包装", ("包装なし", "ギフト包装")),
        ),
        colour="#e8cfc0",
    ),
    Product(
        10000104,
        "camera-body",
        "フルサイズ ミラーレス一眼カメラ ボディ",
        "有効画素数 3,300万画素。メーカー保証一年付き。",
        298000,
        {None: 10},
        colour="#cfcfd4",
    ),
    Product(
        10000105,
        "yokan-limited",
        "季節限定 栗羊羹 五本入り",
        "丹波栗を贅沢に使った、秋だけの羊羹です。数量限定。",
        3240,
        {None: 3},
        colour="#dcc3b0",
    ),
    Product(
        10000106,
        "towel-imabari",
        "今治フェイスタオル 二枚組",
        "吸水性にすぐれた今治産のフェイスタオルです。",
        3980,
        {"sand": 40, "sky": 40},
        variants=(Variant("sand", "サンド"), Variant("sky", "スカイ")),
        options=(Option("のし", ("のしなし", "御祝", "内祝")),),
        colour="#e4dcc8",
    ),
    Product(
        10000107,
        "earphones-soldout",
        "ワイヤレスイヤホン 旧モデル",
        "販売終了につき、在庫限りの商品です。",
        5980,
        {None: 0},
        colour="#d5d0dd",
    ),
)


def seed_catalogue() -> dict[str, Product]:
    """Return a fresh catalogue by product code: each shop counts a stock of its own."""
    return {product.code: replace(product, stock=dict(product.stock)) for product in _PRODUCTS}
