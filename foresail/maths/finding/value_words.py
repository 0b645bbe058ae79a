r"""Words beside a value that make another value of it, by language: "lawan dari 7", "7 juta", "7 au carré".

English words of this kind are shared with answers that have no box (`notation/nouns.py`). Of others: numerals,
operations, parts and multiples, comparisons. What is as well a plain word elsewhere is left out ("media", "tiers"),
or counts only beside a number ("7 nhân 2", for "nhân viên" are clerks).
"""

from __future__ import annotations

from foresail.maths.finding.words import compiled
from foresail.maths.notation.vocabulary import word_set

# Before a value.

NUMERALS = word_set("""
    nol sifar dua tiga empat lima enam tujuh delapan lapan sembilan sepuluh sebelas belas puluh ratus seratus ribu
    seribu juta miliar milyar bilion triliun
    không hai ba bốn sáu bảy tám chín mười mươi trăm nghìn ngàn triệu tỷ tỉ
    dalawa dalawang tatlo tatlong apat limang anim pito walo siyam sampu sampung dalawampu dalawampu't sandaan daan
    libo milyon
    dois duas três quatro cinco seis sete oito nove dez onze doze treze quatorze catorze quinze dezesseis dezessete
    dezoito dezenove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa cem cento duzentos mil milhão
    milhões bilhão bilhões
    cero dos tres cuatro siete ocho nueve diez trece catorce veinte veinti treinta cuarenta cincuenta sesenta
    ochenta cien ciento doscientos quinientos millón millones
    zéro deux trois quatre cinq huit neuf dix douze treize quatorze seize vingt trente quarante cinquante soixante
    mille million millions milliard milliards
    null zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn zwanzig einundzwanzig dreißig
    vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend millionen milliarden
    십 이십 삼십 백 천 영점
""")
ONES = word_set("satu một isa um uma uno una un une eins ein eine")  # articles elsewhere
# "minus 7", "khác 7"
OPERATIONS_BEFORE = word_set("""
    minus negatif tolak tambah darab bahagi dikali dibagi didarab dibahagi dikurangi dikurang ditambah pangkat akar
    setengah separuh songsangan
    âm trừ cộng nhân chia căn mũ khác nửa
    negatibo negatibong bawas dagdag kalahati
    menos negativo negativa más moins négatif négative negativ ungleich zweimal doppelt dreimal viermal fünfmal
    zehnmal halb unter
    마이너스 음의 절반의 배의 루트 제곱근 로그 아닌
""")
# Behind a number: "3 fois 7", "zero vírgula 7".
OPERATIONS_OF_NUMBERS = word_set("""
    kali ganda lần fois veces vezes beses mal phần per mod modulo
    point koma perpuluhan phẩy vírgula coma punto virgule komma titik
""")
# "la mitad de 7", "căn bậc hai của 7", "größer als 7"
FILLERS_OF = word_set("""
    of than dari daripada bagi pada của ng sa kay de da do das dos del du des d que à au von vom der dem des aus als
""")
OPERATIONS_OF = word_set("""
    lawan kebalikan setengah separuh sepertiga seperempat seperlima kuadrat kubik akar pangkat log logaritma
    faktorial kali invers kurang lebih besar kecil banyak sedikit punca songsangan suku resiprokal persen peratus
    nửa căn phương đảo đối thừa lần ước bội
    doble triple beses kalahati kabaligtaran bahagi mababa mataas higit kulang porsyento
    dobro triplo quádruplo metade terço quarto quinto décimo raiz quadrada cúbica quadrado cubo inverso oposto
    simétrico fatorial logaritmo seno cosseno tangente recíproco potência menor maior mais menos diferente cento
    cuádruple mitad tercio cuarto raíz cuadrada cuadrado opuesto factorial coseno potencia mayor más distinto
    double moitié tiers quart cinquième dixième racine carrée cubique carré cube inverse opposé factorielle
    logarithme sinus cosinus tangente puissance inférieur inférieure supérieur supérieure plus moins petit grand
    différent
    doppelte dreifache vierfache hälfte drittel viertel fünftel wurzel quadratwurzel kubikwurzel quadrat kehrwert
    fakultät logarithmus kosinus gegenzahl kleiner größer mehr weniger prozent
""")

# Behind a value.

CHANGING_AFTER = word_set("""
    juta ribu ratus puluh miliar milyar bilion triliun trilion lusin belas kuadrat faktorial setengah perempat
    pertiga pangkat dikali dibagi didarab dibahagi ditambah dikurangi dikurang darab negatif
    triệu nghìn ngàn trăm mươi tỷ tỉ vạn chục tá rưỡi
    milyon libo daan bilyon trilyon dosena kuwadrado negatibo
    milhões milhão bilhões bilhão trilhões trilhão mil cem dúzia dúzias dezenas centenas milhares terços quintos
    décimos fatorial negativo negativos
    millones millón cien billones docena docenas decenas tercios
    mille millier milliers milliard milliards douzaine douzaines dizaines centaines cinquièmes dixièmes factorielle
    puissance négatif
    millionen milliarde milliarden billionen tausend hundert dutzend drittel viertel fünftel zehntel einhalb
    fakultät geteilt negativ fach faches
    제곱 세제곱 더하기 빼기 곱하기 나누기 이상 이하 미만 초과 분의 팩토리얼 제외
""")
# With a number behind: a range, or an operation.
BEFORE_NUMBER = word_set("""
    to through thru until till bis à a até hasta đến tới hingga sampai hanggang jusqu'à
    kurang tambah tolak bahagi mũ nhân chia cộng trừ dagdag bawas menos mais más moins hoch fois vezes veces kali
    beses mal por entre sobre sur durch x
""")
PHRASES_AFTER = compiled(
    r"(?:ao|al|au|zum) (?:quadrado|cubo|cuadrado|carré|cube|quadrat)\b|elevad[oa] (?:a|ao|al)\b|à la puissance"
    r"|divi(?:dido|sé|ded|diert)\b|multipli\w+\b|di(?:kali|bagi)\w*\b|hinati\b"
    r"|(?:e|y|et|at|und|dan) (?:mei[ao]|medi[ao]|demie?|kalahati|ein halb|setengah)\b"
    r"|(?:vírgula|coma|virgule|komma|phẩy|koma|perpuluhan|punto|point)\s+\w"
    r"|(?:o|ou|oder|atau) (?:más|menos|mais|plus|moins|mehr|weniger|lebih|kurang|higit)\b"
    r"|(?:por cento|por ciento|pour cent|prozent|persen dari|peratus daripada|phần trăm|porsyento)"
    r" (?:de|von|của|ng)?\s*\d"
    r"|(?:abaixo de|bajo|au-dessous de|sous|unter|di bawah|dưới) (?:zero|cero|zéro|null|nol|sifar|không)\b"
    r"|em dobro|bình phương|lập phương|giai thừa|phần (?!tử)\w+|trở (?:lên|xuống)|kuasa (?:dua|tiga)"
    r"|kali (?:ganda|lipat)|ke (?:atas|bawah)|per (?:dua|tiga|empat|lima|enam|delapan|sepuluh)\b"
    r"|의\s*(?:제곱|세제곱|두\s*배|\d+\s*배|절반|반|역수|팩토리얼|계승|음수)|점\s*[영일이삼사오육칠팔구]|에서\s*\d"
    r"|(?:십|반)(?=[\s.,입이]|\Z)|세?제곱(?!미터|센|킬로|밀리|인치|피트|[ck]?m)|이상|이하|미만|초과|인가요|일까요|입니까"
)

# In scripts without spaces.

UNSPACED_BEFORE = compiled(
    r"(?:(?<![增参添相])加|[减減乘]|[减減]去|加上|乘以|除以|倍[的の]|分[之の]|根[号號]|立方根?|平方根?"
    r"|[零〇一二三四五六七八九十百千\d][点點]|[二两兩三四五六七八九十百千万萬亿億]|(?<!不)[小大少多低高][于於]"
    r"|超[过過]|不[到足]|未[满滿]|未満の|より(?:大きい|小さい|少ない|多い)|マイナス|[负負](?:の|数)?|半分の|ルート|一半的?"
    r"|ลบ|เท่าของ|ครึ่ง(?:หนึ่ง)?ของ|รากที่\S{1,6}ของ|กำลัง(?:สอง|สาม)ของ|ส่วนกลับของ|ลอการิทึมของ|แฟกทอเรียลของ"
    r"|(?:น้อย|มาก)กว่า|(?:ศูนย์|หนึ่ง|สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|สิบ)จุด|(?:ยี่)?สิบ|ร้อย|พัน|ล้าน"
    r"|ใน(?:สอง|สาม|สี่)ของ|หาร(?:ด้วย)?|คูณ(?:ด้วย)?|บวก)[\s$*\\(\[]*\Z"
)
UNSPACED_AFTER = compiled(
    r"\s*(?:的|の)?\s*(?:[百千万萬亿億兆十半余餘‰乗]|多(?![边邊角面种種])|几|[点點][零〇一二三四五六七八九\d]|分[之の]|次方"
    r"|[阶階](?:乘|乗)|[倒逆][数數]|相反[数數]|[负負][数數]|[立平]方(?![米公分厘毫千英单單センメキcmk])|二乗|2乗"
    r"|[两兩二三四五六七八九十\d]+倍|一半|半分|[二三四五六七八九十百]+分之|以[上下内內外]|除外|未[满滿満]|[加减減乘除]|足す"
    r"|引く|掛ける|かける|割|を?(?:引|足|か)|から\s*\d|[到至]\s*\d|[成折打](?=[。，,.\s]|\Z)|で(?:すか|しょうか)|[吗嗎]"
    r"|ล้าน|แสน|หมื่น|พัน(?!ธ)|ร้อย|สิบ|โหล|ยกกำลัง|กำลัง(?:สอง|สาม)|คูณ|หาร|บวก|ลบ|ครึ่ง|เปอร์เซ็นต์ของ\s*\d|แฟกทอเรียล"
    r"|จุด(?:ศูนย์|หนึ่ง|สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|\d)|ขึ้นไป|ลงมา|ถึง\s*\d|หรือ(?:เปล่า|ไม่)|ใช่ไหม|ไหม)"
)
