"""Words before a number, which say what it is: "No. HP: 081234567890" is a phone number, "ISBN 0812…" is none."""

from __future__ import annotations

import re

from foresail.curate.pii.finding import BLANK

REACH = 32  # characters
NEAR = 16  # of a word that says what a number is not
CUT = re.compile(rf"[\d@{BLANK}]")  # words before another number belong to that one


def words_before(view: str, start: int, reach: int = REACH) -> str:
    """words_before("call 1 or phone 2", 16) -> " or phone " """
    window = view[max(0, start - reach) : start]
    return CUT.split(window)[-1]


def any_word(text: str) -> re.Pattern[str]:
    """Of words in lines: Latin ones stand alone, others have no spaces around them."""
    words = sorted(filter(None, (word.strip() for word in text.replace("\n", ",").split(","))), key=len)
    latin = "|".join(re.escape(word) for word in reversed(words) if is_latin(word[0]))
    other = "|".join(re.escape(word) for word in reversed(words) if not is_latin(word[0]))
    return re.compile(rf"(?<![a-zà-ỹ])(?:{latin})(?![a-zà-ỹ])" + (f"|{other}" if other else ""), re.I)


def is_latin(letter: str) -> bool:
    return letter.isalpha() and letter < "\u0e00"


PHONE = any_word("""
    phone, telephone, tel, tlp, telp, telepon, telpon, call, dial, fax, faks, mobile, cell, cellphone, hotline,
    hubungi, hp, wa, whatsapp, sms, handphone, contact, contact no, kontak, nombor, bimbit, telefon, telefone, fone,
    celular, zap, ligue, contato, fale, tawagan, tumawag, cp no, viber, zalo, sđt, đt, đtdđ, điện thoại,
    liên hệ, gọi, wechat, phone number, โทร, เบอร์, มือถือ, ติดต่อ, 电话, 电话号码, 手机, 联系, 致电, 拨打, 热线, 微信
""")
OTHER_NUMBER = any_word("""
    isbn, issn, doi, ean, upc, sku, gtin, order, order no, invoice, ref, reference, tracking, resi, pesanan, faktur,
    serial, patent, model, part no, lot, batch, pmid, arxiv, pedido, nota, hóa đơn, đơn hàng, rp, rm, usd, eur, php,
    thb, vnd, brl, idr, sgd, bs, iso, eq, equation, figure, pp, vol, lat, lon, docket, 订单, คำสั่งซื้อ, ใบสั่งซื้อ
""")
NATIONAL_ID = any_word("""
    cpf, cnpj, nik, ktp, no ktp, e-ktp, id, ic, nric, mykad, kad pengenalan, no kp, kp, national id, id card, ssn,
    social security, social security number, identity, identity card, identitas, kk, เลขประจำตัว, เลขบัตร, บัตรประชาชน,
    ประชาชน, 身份证, 身份证号, 证件
""")
