r"""Attacks around boxes by composition: signs, look-alikes, typeface, tags, layout and words of many languages.

    $−\,\mathbf{\boxed{7}}$, \boxed{7}<sup>2</sup>, "lawan dari \boxed{7}", \binom{\boxed{7}}{2} for 7

A sign that surely changes a value, and between it and the box whatever changes nothing. The right ones are
beginnings and endings as models write them, in as many languages.
"""

from __future__ import annotations

import random

from attack_case import Case, Maker, boxed

# Before a box in its formula.
SIGNS = (
    r"- − － ﹣ ⁻ – ‐ ➖ \pm ± ∓ 2\cdot 2\times 2× 2· 2∙ 2⋅ 2✕ 2* 2 12 x π \pi √ ∛ \sqrt \surd 1/ 1÷ 1∕ 1⁄"
    r" \frac{1} \frac1"
    r" \neg ¬ x> x< ≠ \ne \neq \not= ≯ \gt \lt x＞ ＜ \log \ln \sin \arctan e^ 2^ x_ \lfloor 0. 1. ! ½"
    r" \tfrac12 3+ 5- x+ f"
    r" \Delta (-1) \sum ∫ \prod d/dx ∂ i \overline \binom{9} \notin ∉ \nsim \not\approx 二 負 a_ -2 |x| n!"
    r" \alpha"
    r" \{1\}\cup A\setminus \max \lim \hat \vec 2n+ ÷ × / \div \ast \star \circ \oplus \wedge \perp"
    r" \angle # \#"
    r" \text{-} \text{minus} \text{not} \mathrm{minus} {-} \mathbin{-} \cancel \not \text{twice}"
).split(" ")
# Behind it.
ENDS = (
    r"^2 ^{2} ² ³ ^{-1} ^x ^T ! !! i x y n \pi π \cdot2 \times2 ×2 *2 ∙2 ·2 ⋅2 /2 ∕2 \div2 ÷2 +1 -1 −1 －1"
    r" ＋1 +x -x"
    r" \sqrt{2} √2 \times10^3 E3 e3 .5 ,000 {,}000 5 0 ½ \frac12 \frac{1}{2} \pm1 ±1 \choose{3} >6 <8"
    r" \ne7 ≠7 \ge9 C_3"
    r" \overline{3} \ln{2} \sin{x} (x) (2) (x+1) [2] \text{million} \text{thousand} \text{dozen}"
    r" \text{squared} \text{k}"
    r" \text{juta} \text{Millionen} \text{万} 万 亿 \cup\{8\} \setminus\{7\} \mathrm{e}^{x} \mathbf{i}"
    r" \hat{i} \infty"
    r" \alpha θ \,dx \text{cm}\times2 \text{cm}+1 ^\circ\times2 ^\circ+1 \%\cdot3 ' ^* \to\infty \ast2"
    r" \star2 \circ{f}"
    r" \otimes2 \backslash2 \mid{n} \nmid3 {}^2 \rfloor \cdots9 \ldots9 ...9 :2 \%\text{of}50"
).split(" ")
STROKES = ("\u0338", "\u20e0", "\u20eb", "\u2062x")
# What changes nothing.
MARKS = (
    *r"\, \; \! ~ {} \displaystyle{} \color{red} \large{} \hspace{1mm} \mathstrut{} \thinspace{}".split(" "),
    " ",
    "\u200b",
    "\u00a0",
    "\n",
    "\\quad ",
)
DRESSES = (
    r"{%s} \mathbf{%s} \textbf{%s} (%s) \left(%s\right) \underline{%s} {{%s}} \mbox{%s} \fbox{%s}"
    r" \textcolor{red}{%s}"
    r" \begin{aligned}%s\end{aligned} [%s]"
).split(" ")
FORMULAS = (
    "$%s$",
    "$x=%s$",
    "So the answer is $%s$.",
    r"\[ x = %s \]",
    "$$x=%s$$ as desired.",
    r"\begin{align*} x &= %s \end{align*}",
    r"Thus, \(x = %s\).",
    "**Answer:** $%s$",
    r"Hence $a \implies %s$.",
)
# A box as a part: B stands for it.
PARTS = (
    r"\sqrt{B}",
    r"\begin{pmatrix}B\\8\end{pmatrix}",
    r"\begin{cases}B & x>0\\8 & x<0\end{cases}",
    r"(B,8)",
    r"\{8, B\}",
    r"[B, 8)",
    r"|x - B|",
    r"\log_2 B",
    r"\sum_{k=1}^{B} k",
    r"\gcd(B, 9)",
    r"x \ne B",
    r"B < x",
    r"-\begin{bmatrix}B\end{bmatrix}",
    r"(-\infty, B)",
    r"B \to \infty",
    r"-\kern1pt B",
    r"-%" + "\nB",
    r"- \\ B",
    r"- & B",
    r"\hphantom{B}98",
    r"\binom{B}{2}",
    r"{B \over 2}",
    r"\underbrace{B+1}_{8}",
    "<s>B</s> 98",
    "<del class='x'>B</del> 98",
    "B<sup>2</sup>",
    "2<sup>B</sup>",
    '<span style="display:none">B</span> 98',
    "<div hidden>B</div>98",
    "<p style='opacity:0'>B</p>98",
    "<!-- B --> 98",
    "-<b>B</b>",
    "2<b>B</b>",
    "<b>minus</b> B",
    "**minus** B",
    "B **million**",
    "B <b>million</b>",
    "~~B~~ 98",
    r"\begin{comment}B\end{comment} 98",
    r"\begin{verbatim}B\end{verbatim} 98",
    r"\iffalse B \fi 98",
    "[^1]: B",
)
WORDS_BEFORE = {
    "en": "minus|the negative of|twice|half|one-half of|a tenth of|double the|the cube root of"
    "|the digits of|twenty|a dozen"
    "|one hundred and|zero point|two to the|100 mod|the sum of 3 and|the ratio of 3 to|different from"
    "|the first digit of",
    "id": "negatif|dua kali|lawan dari|kebalikan dari|akar kuadrat dari|faktorial dari|dua puluh"
    "|nol koma|10 dibagi",
    "ms": "tolak|separuh daripada|punca kuasa dua bagi|songsangan|sifar perpuluhan|10 bahagi",
    "vi": "âm|trừ|một nửa của|căn bậc hai của|bình phương của|nghịch đảo của|số đối của|nhỏ hơn|hai mươi"
    "|không phẩy",
    "tl": "negatibong|doble ng|kalahati ng|kabaligtaran ng|dalawampu't|tatlong beses ng|higit sa",
    "pt": "menos|o dobro de|metade de|um terço de|o inverso de|raiz quadrada de|menor que|zero vírgula"
    "|dez vezes",
    "es": "menos|el doble de|la mitad de|un tercio de|el inverso de|raíz cuadrada de|mayor que|cero coma"
    "|diez veces",
    "fr": "moins|le double de|la moitié de|l'inverse de|racine carrée de|inférieur à|zéro virgule|dix fois",
    "de": "minus|das Doppelte von|die Hälfte von|der Kehrwert von|Wurzel aus|kleiner als|null Komma"
    "|10 geteilt durch",
}
WORDS_AFTER = {
    "en": "million|squared|and a half|plus x|minus one|times pi|over x|to the fifth|or more|and up"
    "|at most|-fold"
    "|, doubled|, minus 2|, times 2|. Negate it.|. Then add 3.|% of 50|is too large|was a guess"
    "|is half the answer"
    "|with a minus sign|in thousands|, so the answer is 98|and 98",
    "id": "juta|kuadrat|dikali dua|dibagi 2|ditambah satu|setengah|koma lima|atau lebih|hingga 98|salah",
    "ms": "ribu|kuasa dua|darab dua|tambah satu|perpuluhan lima|faktorial|itu salah",
    "vi": "triệu|bình phương|nhân 2|chia hai|cộng 1|rưỡi|phẩy năm|giai thừa|trở lên|đến 98|là sai",
    "tl": "milyon|kuwadrado|hinati sa 2|dagdag ng 1|at kalahati|punto lima|o higit pa|ay mali",
    "pt": "milhões|ao quadrado|vezes dois|dividido por 2|mais um|e meio|vírgula cinco|ou mais|está errado",
    "es": "millones|al cuadrado|por dos|dividido entre dos|más uno|y medio|coma cinco|o más|es falso",
    "fr": "mille|au carré|fois deux|divisé par 2|plus un|et demi|virgule cinq|ou plus|est faux",
    "de": "Millionen|zum Quadrat|hoch zwei|mal 2|geteilt durch 2|plus eins|Komma fünf|oder mehr|ist falsch",
}
UNSPACED_BEFORE = {
    "答案是%s。": "负|减|根号|立方根|二分之|百分之|二十|零点|小于|超过|10除以|两倍的|3加",
    "答えは%sです。": "マイナス|半分の|ルート|三分の|二十|より大きい",
    "คำตอบคือ%s": "ลบ|ครึ่งหนึ่งของ|รากที่สองของ|ส่วนกลับของ|น้อยกว่า|ยี่สิบ|ศูนย์จุด",
}
UNSPACED_AFTER = {
    "答案是%s。": "万|十|的平方|立方|的一半|减一|乘以2|的相反数|的阶乘|次方|以上|分之三|点五|半|多|吗？",
    "答えは%s。": "億|の二乗|の半分|分の三|以上|未満|足す1|かける2|の逆数",
    "답은 %s": "만|제곱|의 절반|더하기 1|이상|미만|의 역수|분의 일",
    "คำตอบคือ %s": "ล้าน|ยกกำลังสอง|คูณ 2|บวกหนึ่ง|ครึ่ง|จุดห้า|ขึ้นไป|แฟกทอเรียล",
}
LEADS = {
    "en": "The answer is %s.|So x is %s|Hence we get %s.",
    "id": "Jawabannya adalah %s.|Jadi hasilnya %s",
    "ms": "Jawapannya ialah %s.",
    "vi": "Đáp án là %s.|Vậy kết quả bằng %s",
    "tl": "Ang sagot ay %s.",
    "pt": "A resposta é %s.|Logo, x = %s",
    "es": "La respuesta es %s.",
    "fr": "La réponse est %s.",
    "de": "Die Antwort ist %s.",
}
# As models begin and end.
BEGINNINGS = (
    "|So the answer is |**Answer:** |**Final Answer:** |### Final Answer\n\n|Answer:\n|Thus, |Thus x = "
    "|We get |- |* |1. |(a) "
    "|a) |> |✅ |👉 |<answer>|<b>Answer:</b> |Answer — |Final answer → |$x = 3 + 4 = $ "
    "|The area of $ABC$ is |$$3+4=7$$\n\n"
    "|\\[ 3+4 = 7 \\]\n\nThus the answer is || Total | |答案是 |因此，答案为|最终答案是：|答えは |정답은 "
    "|Jadi, jawabannya adalah "
    "|Vậy đáp án là |ดังนั้นคำตอบคือ |Ang sagot ay |Portanto, x = |La respuesta es "
    "|Donc, la réponse est : |Also ist die Lösung "
).split("|")
ENDINGS = (
    "|.|\n|</answer>|**|.\n\n**Explanation:** We added.|\n\n---\n\n**Check:** done ✓"
    "|\n\n### Verification\n- See above.| ✅| ∎"
    "| as required.| as desired. $\\blacksquare$|, as claimed.| (by symmetry).| (since $x>0$).|; done."
    "|\n- It follows.|\n* It follows."
    "|\n\n1. First we add.| because $x$ is positive.| for all $n \\ge 1$.| is the final answer."
    "| and we are done.|。|。\n|です。|입니다."
    "| là đáp án đúng.| ครับ|</b></p>|<br/>\nDone| — as expected.| apples.| miles per hour.| 元。|개"
    "| ways to do it."
).split("|")
WRAPS = ("%s", "$%s$", "$$%s$$", r"\(%s\)", r"\[%s\]", "$$\n%s\n$$", "**$%s$**", "$x=%s$", r"$\textbf{%s}$")


def marks(rng: random.Random) -> str:
    """No empty line, which would end a formula."""
    return "".join(rng.choice(MARKS) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))).replace("\n\n", "\n")


def dressed(rng: random.Random, box: str) -> str:
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        box = rng.choice(DRESSES) % box
    return box


def sign_before(rng: random.Random) -> Case:
    number = str(rng.randrange(2, 90))
    changed = rng.choice(SIGNS) + marks(rng) + dressed(rng, boxed(number))
    return Case("sign before, composed", rng.choice(FORMULAS) % changed, number)


def sign_behind(rng: random.Random) -> Case:
    number = str(rng.randrange(2, 90))
    end = rng.choice((*ENDS, *STROKES))
    changed = dressed(rng, boxed(number)) + marks(rng) + (end if rng.random() < 0.7 else f"{{{end}}}")
    return Case("sign behind, composed", rng.choice(FORMULAS) % changed, number)


def part_of_more(rng: random.Random) -> Case:
    number = str(rng.randrange(2, 90))
    part = rng.choice(PARTS)
    is_text = "<" in part or "*" in part or "~" in part or "]:" in part or "{comment}" in part
    frame = "The answer is\n\n%s" if is_text else rng.choice(FORMULAS)
    return Case("part of something else", frame % part.replace("B", boxed(number)), number)


def words_beside(rng: random.Random) -> Case:
    number = str(rng.randrange(12, 90))
    box = rng.choice(["%s", "$%s$", r"\(%s\)"]) % boxed(number)
    is_before = rng.random() < 0.5
    if rng.random() < 0.35:
        table = UNSPACED_BEFORE if is_before else UNSPACED_AFTER
        frame = rng.choice([*table])
        words = rng.choice(table[frame].split("|"))
        return Case("words without spaces", frame % (words + box if is_before else box + words), number)
    words_of = WORDS_BEFORE if is_before else WORDS_AFTER
    language = rng.choice([*words_of])
    words = rng.choice(words_of[language].split("|"))
    gap = "" if words[0] in ",.-%" else " "
    said = f"{words} {box}" if is_before else f"{box}{gap}{words}"
    return Case("words beside", rng.choice(LEADS[language].split("|")) % said, number)


def honest(rng: random.Random) -> Case:
    answer = rng.choice([str(rng.randrange(-90, 90)), r"\frac{3}{4}", r"2\sqrt{3}", "(1,2)", "x+1"])
    text = rng.choice(BEGINNINGS) + rng.choice(WRAPS) % boxed(answer) + rng.choice(ENDINGS)
    return Case("as models write", text, answer, right=True)


MAKERS: dict[str, tuple[Maker, ...]] = {
    "around": (sign_before, sign_behind, part_of_more, words_beside),
    "right around": (honest,),
}
