"""The vocabulary of cues: English, and the Hindi and Hinglish of Indian support and banking.

Plurals are found by dropping an s. Words that only sometimes name a document (``customer``) are
``headed``: they count when ``id``, ``no`` or ``number`` follows, as in ``customer id``.
"""

from __future__ import annotations

__all__ = ["CUES", "FILLERS", "HEADS", "PERSONAL", "SHORTENED", "UNITS"]

_CUE_WORDS = {
    "phone": """
        phone phones ph mobile mob mobil cell cellphone cellular tel telephone telefon
        whatsapp wa whatsap landline call called calling callback dial ring ringing sms
        contact contactable reach reachable helpline fax phn fon handset otp msisdn mno
        alternate gpay phonepe फोन फ़ोन मोबाइल मोबाईल संपर्क सम्पर्क कॉल व्हाट्सएप व्हाट्सऐप
        ফোন মোবাইল தொலைபேசி மொபைல் ఫోన్ మొబైల్ ફોન મોબાઇલ ಫೋನ್ ಮೊಬೈಲ್ ഫോൺ മൊബൈൽ ਫੋਨ ਮੋਬਾਈਲ
        फोनवर दूरध्वनी
    """,
    "upi": "upi vpa bhim paytm यूपीआई",
    "aadhaar": """
        aadhaar aadhar adhaar adhar aadhaarcard aadharcard uidai uid uidno आधार আধার ஆதார்
        ఆధార్ આધાર ಆಧಾರ್ ആധാർ ਆਧਾਰ
    """,
    "virtual_id": "vid virtual",
    "account": """
        account acct acc accnt ac a/c a\\c a.c accountno acno beneficiary savings demat
        overdraft payee खाता खाते खातें अकाउंट एकाउंट অ্যাকাউন্ট கணக்கு ఖాతా ખાતા ખાતું
        ಖಾತೆ അക്കൗണ്ട് ਖਾਤਾ khata khaata khate
    """,
    "ifsc": "ifsc ifs",
    "card": "card cards cc visa mastercard amex rupay maestro debit credit कार्ड",
    "pan": "pan panno पैन",
    "gstin": "gstin gst जीएसटी",
    "ssn": "ssn social",
    "passport": "passport पासपोर्ट",
    "voter": "voter epic election elector evic मतदाता वोटर",
    "licence": "licence license dl driving driver लाइसेंस",
    "secret": """
        secret key keys token password passwd salt hmac signing credential credentials apikey bearer
        passphrase encryption
    """,
    "email": "email mail gmail ईमेल",
    "reference": """
        order ord orderid invoice inv bill receipt rcpt ticket tkt case sr incident
        complaint docket sku asin ean upc gtin isbn issn barcode hsn sac mpn part model
        batch lot serial sn imei imsi iccid utr rrn imps neft rtgs nach ecs ach txn txnid
        transaction trn trx ref reference refno awb tracking consignment shipment waybill
        challan cin brn srn arn crn irn ack acknowledgement acknowledgment eway ewb pnr
        booking voucher coupon policy claim folio quote quotation po grn manifest docketno
        epoch timestamp ts unix nonce offset seq sequence checksum hash sha md5 commit
        revision rev build version ver release job run trace span inode pid tid uuid guid
        row record tweet isin cnr fir survey khasra plot toll parcel fastag rto chassis
        engine meter rma lr gr bl container product item imo mmsi dose lottery packet frame
        payment refund ticketid enrollment enrolment roll consumer counter seat coach box
        req ckyc lan loan sanction deed stamp ledger journal ऑर्डर आर्डर आदेश बिल चालान रसीद
        टिकट शिकायत इनवॉइस ट्रैकिंग लेनदेन संदर्भ পার্সেল অর্ডার ஆர்டர் ఆర్డర్ ઓર્ડર ಆರ್ಡರ್
        ഓർഡർ ਆਰਡਰ
    """,
    "amount": """
        amount amt total subtotal sum balance bal price cost paid pay salary revenue turnover budget
        worth limit fee fees premium emi rs inr usd eur gbp rupees profit loss gdp population
        receivable payable outstanding capacity distance bytes byte size length duration latency
        elapsed count views likes followers subscribers votes steps quantity qty units score width
        height weight memory heap uptime ns ms usec nsec paise crore lakh valuation capital asset
        rupaye rupaya rupiya rakam raqam rashi kiraya रु रू राशि रकम कुल रुपये रुपए मूल्य किराया
    """,
    "headed": """
        customer user client member employee emp vendor supplier patient student candidate
        device message msg request req session event application app registration reg
        connection subscription tenant merchant store terminal agent dealer franchise branch
        site project task issue bug entry object document doc file page query thread channel
        house gate train flight bus vehicle stock form staff badge permit scheme
        certificate cert property tax gas lpg electricity water ca bp cust
    """,
}

CUES = {word: cue for cue, words in _CUE_WORDS.items() for word in words.split()}

# Nouns that close a compound: order NUMBER, customer ID. They carry no meaning of their own.
_HEAD_WORDS = "no nos num number numbers nr nbr id ids code नंबर नम्बर संख्या क्रमांक nambar numb nmbr"
HEADS = frozenset(_HEAD_WORDS.split())

# Words that may stand between a cue and its number without making it any less its own.
_FILLER_WORDS = """
    is are was be the a an my your his her our their its this that these of in it new old
    current registered primary following given below here and or hai h ka ki ke mera meri mere
    aapka aapki uska uski hamara apna yeh ye ko se bhi है का की के मेरा मेरी मेरे आपका आपकी यह
    ये और को से holder as under details detail please kindly note being full complete linked
"""
FILLERS = frozenset(_FILLER_WORDS.split()) | HEADS

# Before a number they mean that somebody is to be reached there.
_PERSONAL_WORDS = "at on from to by with via contacted me him us them पर par pe"
PERSONAL = frozenset(_PERSONAL_WORDS.split())

# Abbreviations whose full stop ends no sentence.
_SHORTENED_WORDS = (
    "no nos ph mob tel acct acc ac a/c ref inv rs ord id num nr dr mr mrs ms cell contact txn"
)
SHORTENED = frozenset(_SHORTENED_WORDS.split())

# Directly behind a number they make it a quantity.
_UNIT_WORDS = """
    paise paisa rupees rupee rs inr usd eur dollars euros crore crores lakh lakhs million
    billion thousand units unit pcs pieces items bytes byte kb mb gb tb bits ms ns us s sec
    seconds secs minutes hours days years points votes views likes followers subscribers
    steps km kms m cm mm kg kgs g grams litres liters people persons users customers records
    rows lines entries tokens cycles iterations shares tonnes tons hits requests events
    messages copies percent rupaye rupaya rupiya रुपये रुपए पैसे किलो
    """
UNITS = frozenset(_UNIT_WORDS.split())
