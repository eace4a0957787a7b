"""Seeded makers of identifiers, and the sentences people write them in."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

from memory.redaction import checks

DIGITS = string.digits
UPPER = string.ascii_uppercase
WORDS = DIGITS + string.ascii_letters


class Maker:
    """Everything random comes from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - texts have to be the same in every run

    def some(self, alphabet: str, count: int) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(count))

    def one(self, *options: str) -> str:
        return self.random.choice(options)

    def checked(self, valid: Callable[[str], bool], first: str, count: int) -> str:
        while True:
            number = first + self.some(DIGITS, count - len(first))
            if valid(number):
                return number

    def aadhaar(self) -> str:
        return self.checked(checks.aadhaar, self.one(*"23456789"), 12)

    def virtual_id(self) -> str:
        return self.checked(checks.virtual_id, self.one(*"23456789"), 16)

    def pan(self) -> str:
        serial = f"{self.random.randint(1, 9999):04d}"
        return (
            self.some(UPPER, 3)
            + self.one(*"ABCFGHJLPT")
            + self.some(UPPER, 1)
            + serial
            + (self.some(UPPER, 1))
        )

    def gstin(self) -> str:
        head = f"{self.random.choice([*range(1, 39), 97, 99]):02d}{self.pan()}{self.one(*'123')}Z"
        return next(head + last for last in DIGITS + UPPER if checks.gstin(head + last))

    def ifsc(self) -> str:
        bank = self.one("HDFC", "SBIN", "ICIC", "PUNB", "UTIB", "KKBK", "CNRB", "BARB")
        return f"{bank}0{self.some(DIGITS, 6)}"

    def phone_in(self) -> str:
        return self.one(*"6789") + self.some(DIGITS, 9)

    def name(self) -> str:
        return self.one("ramesh", "sita.k", "arjun_rao", "priya", "john.doe", "m.khan", "lakshmi")

    def email(self) -> str:
        domain = self.one(
            "example.com", "mail.example.org", "gmail.com", "example.co.in", "iitb.ac.in"
        )
        return f"{self.name()}{self.one('', '7', '.92', '+tag')}@{domain}"

    def upi(self) -> str:
        handle = self.one("ybl", "okaxis", "oksbi", "paytm", "okhdfcbank", "ibl", "axl", "upi")
        return f"{self.one(self.name(), self.phone_in())}@{handle}"

    def voter_id(self) -> str:
        return self.some(UPPER, 3) + self.some(DIGITS, 7)

    def passport(self) -> str:
        return self.one(*"ABCDEFGHJKLMNPRSTUVWY") + self.one(*"123456789") + self.some(DIGITS, 6)

    def driving_licence(self) -> str:
        state = self.one("MH", "DL", "KA", "TN", "UP", "GJ")
        return f"{state}{self.random.randint(1, 60):02d}20{self.random.randint(10, 24)}" + (
            self.some(DIGITS, 7)
        )

    def bank_account(self) -> str:
        return self.one(*"123450") + self.some(DIGITS, self.random.randint(10, 15))

    def card(self) -> str:
        first, size = self.random.choice(
            [("4", 16), ("51", 16), ("55", 16), ("37", 15), ("6011", 16), ("6521", 16), ("36", 14)]
        )
        return self.checked(checks.luhn, first, size)

    def iban(self) -> str:
        country, size, letters = self.random.choice(
            [
                ("DE", 22, 0),
                ("GB", 22, 4),
                ("FR", 27, 0),
                ("NL", 18, 4),
                ("AE", 23, 0),
                ("NO", 15, 0),
            ]
        )
        body = self.some(UPPER, letters) + self.some(DIGITS, size - 4 - letters)
        numeric = "".join(str(int(char, 36)) for char in f"{body}{country}00")
        return f"{country}{98 - int(numeric) % 97:02d}{body}"

    def phone(self) -> str:
        return self.one("+1415", "+4420", "+971", "+49 30 ".replace(" ", ""), "+65") + (
            self.one(*"23456789") + self.some(DIGITS, 7)
        )

    def ssn(self) -> str:
        return f"{self.random.randint(1, 665):03d}{self.random.randint(1, 99):02d}" + (
            f"{self.random.randint(1, 9999):04d}"
        )

    def api_key(self) -> str:
        return self.one(
            "sk-proj-" + self.some(WORDS + "_-", 40) + "Q",
            "sk-ant-api03-" + self.some(WORDS, 60),
            "sk-" + self.some(WORDS, 48),
            "AKIA" + self.some(UPPER + "234567", 16),
            "AIza" + self.some(WORDS, 35),
            "ghp_" + self.some(WORDS, 36),
            "github_pat_" + self.some(WORDS, 22) + "_" + self.some(WORDS, 59),
            "glpat-" + self.some(WORDS, 20),
            "xoxb-" + self.some(DIGITS, 12) + "-" + self.some(WORDS, 24),
            "sk_live_" + self.some(WORDS, 24),
            "rzp_live_" + self.some(WORDS, 14),
            "AC" + self.some("0123456789abcdef", 32),
            "SG." + self.some(WORDS, 22) + "." + self.some(WORDS, 43),
            "hf_" + self.some(WORDS, 34),
            "npm_" + self.some(WORDS, 36),
            "pypi-AgEIcHlwaS5vcmc" + self.some(WORDS, 60),
        )

    def bearer_token(self) -> str:
        return self.some(WORDS, 12) + "7" + self.some(WORDS, 20)

    def basic_auth(self) -> str:
        return base64.b64encode(f"{self.name()}:{self.some(WORDS, 12)}".encode()).decode()

    def jwt(self) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.name(), "iat": 1732937116})
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts]
        return ".".join(part.decode().rstrip("=") for part in encoded) + "." + self.some(WORDS, 43)

    def private_key(self) -> str:
        label = self.one("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY")
        body = "\n".join(self.some(WORDS + "+/", 64) for _ in range(4))
        return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"

    def password(self) -> str:
        return self.some(string.ascii_letters, 5) + self.one(*"@#!_") + self.some(DIGITS, 3)

    def secret(self) -> str:
        return self.some("0123456789abcdef", self.random.choice([32, 40, 64]))


# What people write before and after it. A kind that needs the words to be recognised gets only
# sentences with the words.
SENTENCES = {
    "aadhaar": ["my aadhaar is {}", "Aadhaar no. {} verified", "आधार {} है", "{}", "KYC: {} done"],
    "virtual_id": ["VID {} for the request", "virtual id: {}", "aadhaar vid {}"],
    "pan": ["PAN {} on file", "his PAN card number is {}", "pan: {}", "{} is the PAN", "पैन {}"],
    "gstin": ["GSTIN {}", "billed to {} in Pune", "{}", "GST no {} of the vendor"],
    "ifsc": ["IFSC {}", "transfer via {} branch", "ifsc code: {}", "NEFT to {}"],
    "phone_in": [
        "Ramesh at {} disputed invoice INV-42",
        "call {} after ten",
        "मेरा नंबर {} है",
        "{}",
        "Order 55 for Sita, {}",
        "mera mobile {} hai",
        "Ph: {}",
    ],
    "upi": ["pay {} now", "UPI: {}", "{} se bhej do", "{}"],
    "voter_id": ["voter id {}", "EPIC no. {} of the voter", "Voter ID card: {}"],
    "passport": ["passport {}", "Passport No: {}", "her passport number is {}"],
    "driving_licence": ["driving licence {}", "DL no. {}", "license number {}"],
    "bank_account": ["A/c {}", "account number: {}", "खाता {} में", "savings acct no. {}"],
    "email": ["write to {}", "<{}>", "email: {}, please", "{}"],
    "card": ["card {}", "paid with {} today", "{}", "Visa card no. {} exp 12/27"],
    "iban": ["IBAN {}", "send it to {} please", "{}"],
    "phone": ["call {} now", "{}", "Tel. {}", "reach her on {}"],
    "ssn": ["SSN {}", "social security number: {}", "her ssn is {}"],
    "api_key": ["key {} works", "OPENAI_API_KEY={}", '{{"k": "{}"}}', "use {}."],
    "bearer_token": ["Authorization: Bearer {}", "curl -H 'Authorization: Bearer {}' x"],
    "basic_auth": ["Authorization: Basic {}", "header Basic {} sent"],
    "jwt": ["token {}", "cookie={}; path=/", "{}"],
    "private_key": ["{}", "key:\n{}\nend"],
    "password": [
        "password={}",
        'DB_PASSWORD: "{}"',
        "my password is {}",
        "postgres://app:{}@db.example.com/app",
        "--password {}",
    ],
    "secret": ["secret {}", "signing key: {}", "api_secret={}", '"client_secret": "{}"'],
}


def conversation(seed: int) -> list[tuple[str, str, str]]:
    """Return turns with one identifier each, all kinds in turn: kind, value, text."""
    source = Maker(seed)
    turns = []
    for at in range(max(map(len, SENTENCES.values()))):
        for kind, sentences in SENTENCES.items():
            value = getattr(source, kind)()
            if kind == "password":
                # A # begins the fragment of a URL.
                value = value.replace("#", "!")
            turns.append((kind, value, sentences[at % len(sentences)].format(value)))
    return turns


def needles(value: str) -> list[str]:
    """Return what must not be found anywhere: a value over several lines is one needle a line."""
    return [line for line in value.lower().splitlines() if "-----" not in line]
