"""The words that tell what is said of a value, in the languages that models answer in, as patterns.

English, Chinese, Indonesian, Malay, Vietnamese, Thai, Tagalog, Portuguese, Spanish, French, German, Japanese and
Korean, and the commonest words of a few more. A new wording of a hedge belongs here.
"""

from __future__ import annotations

import re


def pattern(latin: str, others: str = "") -> str:
    """Whole words of the scripts that put spaces between them, or any place in the scripts that do not."""
    return rf"(?:\b(?:{latin})(?!\w)|{others})" if others else rf"(?:\b(?:{latin})(?!\w))"


def compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


# Denials: what rules the next value out. `FILLING` may stand between the denial and the value.
NOT = (
    r"(?<!\bif )not|never|cannot|\w{1,12}n[’']t|no|nor|neither|without|anything (?:but|except)"
    r"|(?<!number )(?<!nothing )(?<!none )other than|rather than|instead of|no longer|far from|differ from"
    r"|differs from|different from|unlike|bukan(?:lah)?|tidak(?:lah)?|tak|không|chẳng|hindi|não|nao|nunca|pas"
    r"|jamais|nicht|keine?[nrms]?|niemals|non|nunca|jamás|не"
)
NOT_UNSPACED = r"不|非|ไม่|而不"
FILLING = (
    r"be|been|being|equals?|to|the|an?|is|are|was|as|exactly|really|simply|actually|necessarily|just|even"
    r"|always|likely|definitely|certainly|any|my|our|answer|final|correct|right|value|say|choose|write|claim"
    r"|phải|là|thể|bằng|nào|sama|dengan|mungkin|adalah|ay|ang|puede|pode|ser|es|é|igual|a|peut|être|est"
    r"|égale?|à|kann|sein|die|gleich"
)
FILLING_UNSPACED = (
    r"可能|能|会|一定|应该|应|等于|等於|是|为|為|必|再|就|ใช่|น่า|จะ|เป็น|เท่ากับ|ได้|คือ|อาจ|สามารถ|ควร"
)
NOT_AFTER = (
    r"[ \t]*+(?:だ?とは?思[わい]|(?:이?라고|이?라는)[^.]{0,8}않|では(?:あり|な)|じゃ(?:あり|な)"
    r"|(?:[이가은는][ \t]*+)?(?:아니(?!면)|아닙)|(?:nicht|ist es nicht)\b)"
)

# Withdrawals.
WRONG_UNSPACED = (
    r"(?:(?<![无無没沒不])(?<!没有)(?:错|錯)|有误|有誤|作废|作廢|間違|まちが|違い"
    r"|違う|誤り|틀렸|틀린|틀립|실수|오답|잘못|(?<!ไม่)ผิด)"
)
WRONG = pattern(
    r"wrong|incorrect|mistake[ns]?|mistaken|erroneous|errors?|false|invalid|inaccurate|untrue|nonsense|bogus"
    r"|flawed|miscalculat\w*|miscount\w*|misread|impossible|absurd|extraneous|rejected|discarded|ruled out"
    r"|fails?|contradict\w*|violates?|lied|salah|keliru|sai|nhầm|lầm|mali|maling|nagkamali|errad[oa]"
    r"|incorret[oa]|falso|inválid[oa]|engan(?:ei|ado|ada)|equivoqué|equivocad[oa]|equivocacion|equivocación"
    r"|incorrect[oa]|erróne[oa]|(?:est[aá]|es) mal|faux|fausse|erronée?|trompée?|trompé|incorrecte|falsch\w*"
    r"|geirrt|verrechnet|inkorrekt|fehler|sbagliat[oa]|errat[oa]"
    r"|неверн\w*|неправильн\w*|ошиб\w*",
    WRONG_UNSPACED,
)
RIGHT = (
    r"right|correct|true|valid|accurate|possible|it(?=\W*\Z)|answer|sure|certain|confident|accept(?:ed|able)"
    r"|counted|trusted|works?|satisf(?:y|ies|ied)|hold|fit|match|sense|what was asked|benar|betul|tepat"
    r"|yakin|pasti|jawaban(?:nya)?|jawapan(?:nya)?|đúng|chính xác|chắc|đáp án|đáp số|câu trả lời|tama"
    r"|sigurado|sagot|cert[oa]|certeza|corret[oa]|resposta|correct[oa]|segur[oa]|respuesta|juste|sûre?"
    r"|bon(?:ne)?|réponse|exacte?|richtig|sicher|korrekt|antwort"
)
NOT_RIGHT = (
    rf"\b(?:{NOT})(?!\w)(?:[ \t]+[^\s.,;:]+){{0,4}}?[ \t]+(?:{RIGHT})(?!\w)"
    r"|不(?:太)?(?:正确|正確|对|對|确定|確定|成立|知道)|不是(?:正确|最终|我的)?答案|ไม่(?:ถูก|แน่ใจ|ใช่คำตอบ"
    r"|มั่นใจ|ใช่)|正解ではな|正解ではあ|正解じゃ|正しくな|正しくあり|自信がな|自信があり|答えではあ"
    r"|答えではな|確信がな|확실하지|확신이|정답이 아|답이 아|맞지 않|옳지 않|\bstimmt(?: so)? nicht\b"
    r"|\b(?:don[’']?t|do not|can[’']?t|cannot) (?:know|tell|say|decide)\b|\bunsure\b|\buncertain\b"
)
NO = pattern(
    r"no|nope|nah|not|wrong|false|incorrect|salah|sai|mali|hindi|bukan|tidak|không|não|falso|errado"
    r"|incorrecto|faux"
    r"|non|nein|falsch",
    r"不|不对|不是|错|違う|違います|いいえ|いや|아니요|아니|ไม่|ผิด",
)
TAKEN_BACK = pattern(
    r"(?:scratch|strike) (?:that|this|it)|never ?mind|(?:take|took|taking) (?:that|this|it|my \w+) back"
    r"|just (?:kidding|joking)|(?:disregard|ignore|forget|discard|retract|withdraw|delete|cancel|erase"
    r"|revoke|drop|reject) (?:(?:all|everything|of|that|this|it|these|my|what|(?:the|any) (?:\w+ )?(?:above"
    r"|previous|last|box(?:ed)?|answers?|result))\b)|please (?:disregard|ignore)|retracted|withdrawn"
    r"|(?:let me|i[’']ll|we[’']ll|will|must|need to|have to) (?:start over|redo|retry|try again|reconsider"
    r"|rethink|think again|recompute|recalculate|correct|fix|start again)|second thoughts?|changed my mind"
    r"|to be (?:corrected|fixed)|abaikan|lupakan|batalkan|(?:hãy )?bỏ qua|quên (?:đi|điều)|desconsider[ae]"
    r"|esqueça|olvid[ae]|descart[ae]|ignor[ae] (?:a|o|la|el|lo|isso|eso|est[ae]|ess[ae])|ignorez|oubliez"
    r"|ignorier\w*|vergiss"
    r"|huwag pansinin|kalimutan",
    r"忽略|无视|無視|撤回|收回|取消|重新(?:算|计算|来)|무시|취소|철회|ยกเลิก|ไม่ต้องสนใจ|ละเว้น|取り消",
)
DOUBT = (
    r"\b(?:not (?:sure|certain|confident)|unsure|(?:i[’']m|am|still) uncertain|do(?:n[’']t| not) know"
    r"|no idea|give up|i guess|(?:an?|my|only|just|best) guess|(?:might|could|may)(?: also"
    r"| well)? be(?=\s+(?:[-−$\d\\(]|wrong|incorrect|off|mistaken))"
    r"|(?<!no )(?<!without )(?<!without a )doubts?|doubtful|probably|possibly|maybe|perhaps|barangkali"
    r"|mungkin(?=[^.,]{0,20}\d)|entah|có lẽ|có thể là|baka|siguro|marahil|talvez|provavelmente|possivelmente"
    r"|quizás?|tal vez|probablemente|posiblemente|peut-être|probablement|vielleicht|wahrscheinlich"
    r"|möglicherweise)(?!\w)|不知道|不确定|可能(?:是|为|就)|也许|或许|大概|かもしれ|たぶん|おそらく|多分"
    r"|아마|모르|글쎄|อาจ(?:จะ)?(?:เป็น|คือ)|บางที|ไม่แน่"
)
# In a response without a box these leave a doubt, too.
UNDECIDED = rf"{DOUBT}|\b(?:cannot|can[’']t|unable|guess|consider(?:ed|ing)?|contradiction)\b"
DISBELIEF = (
    r"\b(?:doubt|deny|denies|disagree|refuse|reject|don[’']?t (?:think|believe)|do(?:es)? not (?:think"
    r"|believe|follow)|(?:not true|untrue|false|wrong)(?= (?:that|to))"
    r"|no way|nobody \w+|no one \w+|no creo|não (?:acho|acredito|penso)|(?:pense|crois) pas|glaube nicht"
    r"|tidak (?:percaya|berpikir|yakin)|không (?:nghĩ|tin)|hindi ako naniniwala)(?!\w)"
)
DISBELIEF_UNSPACED = r"不认为|不覺得|不觉得|不相信|不信|ไม่คิดว่า|ไม่เชื่อ"
REFERS = pattern(
    r"that|this|it|its|my|mine|i|we|above|answer|result|which|box(?:ed)?|value|itu|ini|jawab\w*|jawapan\w*"
    r"|saya|di atas|đó|này|điều|tôi|đáp án|kết quả|iyon|ito|iyan|ako|sagot|isso|isto|eu|resposta|eso|esto|me"
    r"|respuesta|c|ce|cela|ça|je|réponse"
    r"|das|dies\w*|ich|antwort|ergebnis",
    r"这|這|那|我|上面|上述|以上|答案|结果|これ|それ|答え|이것|이건|제가|그것|답|นั่น|นี่|อันนี้|ผม|ฉัน|คำตอบ",
)
OF_OTHERS = pattern(
    r"others?|negative|roots?|solutions?|cases?|extraneous|options?|choices?|common|typical|avoid"
    r"|otherwise|would|if|unless"
)

# In English, a short sentence after an answer also admits an error or puts another value in its place by these.
ADMITTED = (
    r"\A[\s$*.)\\]*(?:(?:which|that|this|it)\s+)?(?:was|is|were|are|would be)\b[^.\n\d]{0,30}\b(?:wrong"
    r"|incorrect|false|mistaken|(?:an?|my) (?:error|mistake|blunder|lie|joke))\b|\bI (?:was|am"
    r"|have been) (?:wrong|mistaken|lying|kidding|joking)\b|\b(?:that|this|it|which) (?:is|was) (?:clearly "
    r"|just |only |actually )*(?:an?|my) (?:error|mistake|blunder|lie|joke)\b"
)
NOT_ADMITTED = r"\b(?:not|n't|never|no longer)\b[^.\n]{0,20}\Z"
REPLACED = (
    r"\A\W*(?:but\s+)?(?:no|nope|wait|sorry|oops|whoops|correction|actually|hmm+|rather|instead|scratch that"
    r"|on second thoughts?|or rather|well)\b"
    r"|\b(?:should (?:have been|be|read)|I mean[t]?|(?:really|in fact) it is)\b"
)
CORRECTING = (  # words of which every such sentence has one
    r"wrong|incorrect|false|mistake|mistaken|error|blunder|lie|lying|joke|joking|kidding|nope|no|wait|sorry"
    r"|w?hoops|oops|correction|actually|hm+|rather|instead|scratch|second|well|should|mean|meant|really|fact"
)

# Offers: what puts another value beside the one before.
OR = pattern(
    r"and/or|or|alternativ\w*|versus|vs|else|otherwise|if not|maybe|perhaps|possibly|(?:could|might"
    r"|may)(?: \w+)? be|another|atau(?:pun)?|hoặc|hay|(?-i:o)|o(?=\s+(?:[-−$\d\\(*]|bien|quiz|tal|baka"
    r"|kaya))|ou|oder|bzw|bien|quizás?|talvez|tal vez|peut-être|vielleicht|mungkin|bisa|boleh juga|có thể"
    r"|có lẽ|cũng|baka|maaari\w*|também|podr[ií]a|también|pourrait|könnte|oppure|veya|или"
    r"|possivelmente|posiblemente",
    r"或者?|还是|還是|要么|要嘛|也可能|可能|另一个|หรือ|อาจ|か(?=[\s*$\\(\d]|\Z)|または|もしくは|あるいは|それとも|또는|혹은|거나|이나|아니면",
)
MODAL = (
    r"\bshould (?:have been|be)\b|\b(?:could|might|may)(?: also| well| even)? be\b"
    r"|\banother (?:possible )?(?:answer|solution|value|possibility)\b|\b(?:bisa (?:juga|jadi)|boleh juga"
    r"|cũng có thể|có thể là|maaari\w*|também pode|podría|pourrait|könnte|puede ser)(?!\w)|也可能|可能是"
    r"|另一个|另外|อาจ"
)
# Words that belong to a number: "7 million" is not 7.
NUMBER_AFTER = pattern(
    r"hundred|thousand|million|billion|trillion|quadrillion|quintillion|dozen|score|hal(?:f|ves)|thirds?"
    r"|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|elevenths?|twelfths?"
    r"|hundredths?|thousandths?|squared|cubed|factorial|(?:square |cube )?roots?|pi|(?:times|plus|minus|over"
    r"|divided by)(?=\s+(?:[\d$\\(]|one|two|three|four|five|six|seven|eight|nine|ten|pi))|to the (?=power"
    r"|\w+th\b)|and (?:a|one) half|below zero|juta|ribu|ratus|mil[iy]ar|triliun|triệu|nghìn|ngàn|trăm|tỷ|tỉ"
    r"|milyon|libo|daan|mil|milh(?:ão|ões)|bilh(?:ão|ões)"
    r"|mill(?:ón|ones)|mille|millions?|milliards?|millionen|tausend|hundert|milliarden?",
    r"[百万萬亿億兆]|千(?![克米瓦卡焦帕赫伏升])|[백천만억조]|ล้าน|แสน|หมื่น|พัน|ร้อย",
)
NUMBER_BEFORE = pattern(
    r"minus|negative|half of|twice|(?:square |cube )?root(?: of)?|âm|negatif|menos|moins|negativo",
    r"负|負|マイナス|ลบ",
)
# Twice, half, the root, the square of a value.
OPERATION_BEFORE = pattern(
    r"gấp đôi|một nửa(?: của)?|nửa|căn(?: bậc hai)?(?: của)?|bình phương(?: của)?|dua kali|setengah(?: dari)?"
    r"|separuh(?: dari)?|akar(?: kuadrat)?(?: dari)?|kuadrat(?: dari)?|doble(?: de)?|dobro(?: de)?|mitad de"
    r"|metade de|ra[ií]z(?: cuadrada| quadrada)?(?: de)?|cuadrado de|quadrado de|moitié de"
    r"|racine(?: carrée)?(?: de)?|carré de|hälfte von|doppelte von|wurzel(?: aus)?|quadrat von"
    r"|dalawang beses(?: ng)?|kalahati ng",
    r"배의|절반인?|제곱근|两倍的?|兩倍的?|一半的?|平方根|平方|倍の|半分の|สองเท่าของ|ครึ่งหนึ่งของ|รากที่สองของ",
)
# Joins the last items of a list of solutions: "x = 1 or x = 2".
AND_OR = pattern(r"and/or|or|atau|hoặc|ou|oder|o", r"或|หรือ|または|또는")
AND = pattern(r"and|dan|và|y|e|et|und|at", r"[,;&、，；]|和|与|與|以及|และ|と|및")
CORRECTION = pattern(
    r"wait|reflection|(?:không|não|nein|non|hindi|bukan|tidak)(?=\s*[,:;—-])|wrong|mistake\w*|actually"
    r"|instead|correct(?:ed|ion|ing)|recheck\w*|re-check\w*|recomput\w*|hm|hmm+|oops|rather|sorry|incorrect"
    r"|error|should (?:have been|be)|second thoughts?|hold on|edit|update|tunggu|maaf|sebenarnya|sepatutnya"
    r"|khoan|thực ra|xin lỗi|teka|pasensya|espere|desculpe|na verdade|espera|perdón|en realidad|attendez"
    r"|pardon|en fait|moment|eigentlich"
    r"|entschuldigung|salah|sai|mali",
    r"\bno\b|不对|不對|错|錯|等等|更正|修正|抱歉|เดี๋ยว|ขอโทษ|ผิด|いや|待って|すみません|間違|訂正|잠깐|아니(?!면)|죄송|틀렸",
)
STEP = pattern(
    r"so|thus|hence|therefore|then|giv(?:es?|ing)|yields?|impl(?:y|ies)|becomes?|makes?|means?|leads?"
    r"|finally|final|but|however"
    r"|yet|checking|maka|sehingga|jadi|vậy|nên|suy ra|kaya|logo|portanto|então|luego|entonces|donc|alors"
    r"|dann|somit|daher",
    r"所以|因此|故|则|得|ดังนั้น|จึง|よって|したがって|따라서|그러므로",
)
BECAUSE = pattern(
    r"because|since|(?<!well )as(?! well)|where|when|after|for|from|by|with|using|in(?! (?:fact|reality|truth)\b)"
    r"|of|out of|per|at|on|given|karena|kerana|dari|vì|do|dahil"
    r"|porque|pois|parce que|car|weil|denn|da",
    r"因为|由于|เพราะ|から|なぜなら|왜냐하면",
)
