"""How much is touched that holds no identifier: order ids, amounts, hashes, dates, versions ..."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memory.redaction import checks, default_redactor

EACH = 100
HEX = "0123456789abcdef"


def mobile(m: Any) -> str:
    return str(m.phone_in())


def twelve(m: Any) -> str:
    """Half of them pass the Aadhaar check, to make it harder than chance does."""
    return str(m.aadhaar() if m.random.random() < 0.5 else m.some("0123456789", 12))


def sixteen(m: Any) -> str:
    return str(m.one(m.virtual_id(), m.checked(checks.luhn, "4", 16), m.some("123456789", 16)))


def near_gstin(m: Any) -> str:
    right = m.gstin()
    return str(right[:-1] + next(c for c in "7K3" if c != right[-1]))


def float_of(m: Any) -> str:
    return f"{m.random.random():.12f}"


# A label and what makes the text. Numbers that pass a checksum appear on purpose.
BENIGN: dict[str, Callable[[Any], str]] = {
    "order id": lambda m: m.one("order id {}", "Order #{} shipped", "your order {} is late").format(
        mobile(m)
    ),
    "order number": lambda m: f"order number: {m.one(mobile(m), twelve(m), sixteen(m))}",
    "amount in paise": lambda m: f"invoice total {twelve(m)} paise",
    "amount": lambda m: m.one("Rs. {} due", "₹{} paid", "amount {}", "balance: {}").format(
        mobile(m)
    ),
    "amount in Hinglish": lambda m: m.one("rupaye {} mile", "{} rupaye", "rakam {} hai").format(
        mobile(m)
    ),
    "invoice": lambda m: m.one("invoice {}", "INV-{}", "Invoice no. {} dated 3 May").format(
        mobile(m)
    ),
    "ticket": lambda m: m.one("ticket {} closed", "Ticket #{}", "TKT-{}").format(mobile(m)),
    "sku": lambda m: f"SKU {m.one(mobile(m), twelve(m), m.pan())} out of stock",
    "challan": lambda m: f"challan {m.one('no. ', 'number ', '')}{twelve(m)}",
    "utr": lambda m: m.one("UTR {}", "UTR no: {}", "UPI ref no {}", "RRN {}").format(twelve(m)),
    "awb": lambda m: m.one("AWB {}", "tracking number {}", "consignment no {}").format(twelve(m)),
    "ean": lambda m: f"EAN {m.one('890', '401', '590')}{m.some('0123456789', 10)}",
    "isbn": lambda m: (
        f"ISBN 978-{m.some('0123456789', 1)}-{m.some('0123456789', 4)}-"
        f"{m.some('0123456789', 4)}-{m.some('0123456789', 1)}"
    ),
    "epoch": lambda m: m.one("at {}", "ts={}", "created {}").format(
        m.random.randint(10**9, 2 * 10**9)
    ),
    "epoch in milliseconds": lambda m: f"at {m.random.randint(10**12, 2 * 10**12)} it stopped",
    "uuid": lambda m: f"run {uuid.UUID(int=m.random.getrandbits(128), version=4)} failed",
    "git hash": lambda m: f"commit {m.some(HEX, 40)} and {m.some(HEX, 7)}",
    "checksum": lambda m: m.one("sha256 {}", "md5: {}", "digest {}").format(m.some(HEX, 64)),
    "date": lambda m: m.one("on 2024-{:02d}-11", "on {:02d}/11/2024", "{:02d}.11.2024").format(
        m.random.randint(1, 12)
    ),
    "timestamp": lambda m: (
        f"2024-11-{m.random.randint(10, 30)} 10:{m.random.randint(10, 59)}:22.123456"
    ),
    "compact timestamp": lambda m: (
        f"backup 202411{m.random.randint(10, 30)}{m.some('0123', 6)}.tar"
    ),
    "years": lambda m: " ".join(str(2010 + m.random.randint(0, 15)) for _ in range(3)),
    "version": lambda m: (
        f"v{m.random.randint(1, 20)}.{m.random.randint(0, 99)}.{m.some('123456789', 4)}"
    ),
    "ip address": lambda m: (
        f"host 10.{m.random.randint(0, 255)}.{m.random.randint(0, 255)}.17 is up"
    ),
    "coordinates": lambda m: f"at 18.{m.some('123456789', 7)}, 73.{m.some('123456789', 7)}",
    "float": lambda m: f"loss {float_of(m)} after {m.random.randint(1, 99)} epochs",
    "near gstin": lambda m: f"supplier {near_gstin(m)} rejected",
    "near aadhaar": lambda m: (
        "the number "
        + next(
            n
            for n in iter(lambda: m.some("23456789", 12), "")
            if not checks.aadhaar(n) and n[:2] != "91"
        )
    ),
    "near card": lambda m: (
        "the number "
        + next(
            n
            for n in iter(lambda: "4" + m.some("0123456789", 15), "")
            if not checks.luhn(n) and not checks.virtual_id(n)
        )
    ),
    "pin code": lambda m: f"Pune {m.random.randint(400000, 799999)}, Maharashtra",
    "pnr": lambda m: f"PNR {m.one(*'2468')}{m.some('0123456789', 9)} confirmed",
    "code": lambda m: m.one(
        "def f(x): return x ** 2", "password = os.environ['DB']", "token = get_token()", "x[0:10]"
    ),
    "about passwords": lambda m: m.one(
        "the password is incorrect",
        "password: required",
        "reset your password today",
        "token expired",
        "the secret is out",
    ),
    "at sign": lambda m: m.one("git@github.com:org/repo.git", "icon@2x.png", "a@b", "meet @ five"),
    "prose": lambda m: m.one(
        "She prefers calls after ten.", "Acme renews in March.", "ग्राहक ने शिकायत की।", "ok, 42 then"
    ),
    "row of numbers": lambda m: (
        "scores " + " ".join(str(m.random.randint(60, 99)) for _ in range(5))
    ),
    "quantity": lambda m: f"{mobile(m)} {m.one('units', 'bytes', 'rupees', 'views')} so far",
    "database key": lambda m: m.one("user_id={}", "txn_{}", '{{"orderId": {}}}').format(mobile(m)),
    "url": lambda m: f"https://shop.example.com/{m.one('orders', 'item', 'p')}/{mobile(m)}",
    "reference": lambda m: f"REF/{m.random.randint(2020, 2025)}/{mobile(m)}",
    "short code": lambda m: f"room {m.some('0123456789', 4)}-{m.some('0123456789', 3)}",
    "marketplace order": lambda m: (
        f"{m.some('123456789', 3)}-{m.some('123456789', 7)}-{m.some('123456789', 7)}"
    ),
}


def test_at_least_thirty_sorts_of_text_without_an_identifier_are_tried() -> None:
    assert len(BENIGN) >= 30
    assert len(BENIGN) * EACH >= 3_000


@pytest.mark.parametrize("seed", [1, 2])
def test_texts_without_an_identifier_stay_as_they_are(
    maker: Any, report: Callable[[str], None], seed: int
) -> None:
    source = maker(seed)
    touched = []
    for label, make in BENIGN.items():
        for _ in range(EACH):
            text = make(source)
            if default_redactor.redact(text)[0] != text:
                touched.append((label, text))
    total = EACH * len(BENIGN)
    report(f"touched {len(touched)}/{total}")
    assert len(touched) <= 0.005 * total, touched
