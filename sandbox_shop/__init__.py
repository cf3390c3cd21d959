"""The sandbox shop: a small real web shop over HTTP on which the worker can order for real and nothing is spent.

It behaves like a shop that does not know about the worker: the same cart confirmed and submitted twice is two orders.
What must never happen is therefore countable here. It also misbehaves on command; see `sandbox_shop.control`.

Modules: `catalogue` (what is sold), `shop` (the state: cart, orders, payments, counters), `faults` (misbehaviour on
command), `web` (what every page shares), `storefront`, `checkout`, `account` (the pages), `scraper_api` (item data as
JSON), `control` (the control API), `control_client` (its client), `server` (how it is run).
"""
