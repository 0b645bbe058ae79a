r"""No nesting and no repetition in a response makes a verdict fail: it is correct, wrong or unparsable.

A search with fixed seeds. Each text nests a few constructs in each other and repeats a tail at every level, as
`\pm(((1/2*3/2*3…)/2*3…)/2*3…)`: limits for one product and for one bracket do not bound both together.
"""

import random
import sys
import threading

import pytest

from foresail.maths.verdict import ballot, grade
from foresail.records import Verdict

NESTS = r"""
(@) [@] {@} |@| -(@) x^{@} 2^{@} f(@) (@)! (@)^2 1/(@) (@+x) (1,@) \{@\} \{1,@\} \frac{1}{@} \frac{@}{2}
\sqrt{@} \sqrt[3]{@} \log_{@}2 \sin(@) \max(1,@) \gcd(4,@) \binom{@}{2} \lfloor@\rfloor \overline{@}
\text{@} \boxed{@} \pm(@) (1\pm@) (@)\cup(0,1) [0,1]\cap(@) \{x\mid{}x>@\} x=@ x>@ 1:@ (@)\% (@)^\circ
@\text{cm} 0.\overline{@} (@)\pmod{7} \begin{pmatrix}@&1\\1&2\end{pmatrix}
\begin{vmatrix}@&1\\1&2\end{vmatrix} \begin{cases}@&x>0\\0&x<1\end{cases}
\begin{cases}x=@\\y=1\end{cases} \sum_{k=1}^{@}k \int_0^1(@)dx [[@,1],[2,3]] \forall{}x(@) 答案：@
<answer>@</answer>
""".split()
PRODUCTS = r"/2*3 *3/2 /x*2 *x/y /2/3 \div2\cdot3".split()
TAILS = r"""
+1 -x ^2 ! !! \% ^\circ ,1 ;1 =1 <1 \pm1 \cup(2,3) (x+1) x _1 \text{or}1 \bmod7 \frac12 √2 且1
""".split()
LEAVES = ["1", "x", "1/2", "0.5", "", r"\pi", "10^{99}", "1,2", "(1,2]"]
GOLDS = ["2", r"\frac12", "1,2", "(1,2]", r"(-\infty,1)\cup(2,\infty)", "x>1", "x^2+1", "x=2,y=3", "5 cm", "A",
         "Evelyn", r"2\pm\sqrt3", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"k\pi, k\in\mathbb{Z}", r"50\%",
         "1:2"]  # fmt: skip
FRAMES = [
    r"\boxed{@}",
    r"\boxed{\pm@}",
    r"\boxed{x=@}",
    "The answer is $@$.",
    "#### @",
    "@",
    r"\boxed{1}, \boxed{@}",
]
STATUSES = {"correct", "wrong", "unparsable"}
LONGEST = 9_000


def tower(random: random.Random) -> str:
    """A response of one to three constructs in turns, a number of levels deep."""
    nests = [random.choice(["(@)", random.choice(NESTS)]) for _ in range(random.choice([1, 1, 2, 3]))]
    tails = [
        random.choice(random.choice([PRODUCTS, TAILS])) * random.choice([0, 1, 5, 20, 38]) for _ in nests
    ]
    text = random.choice(LEAVES)
    for level in range(random.choice([2, 4, 6, 8, 20, 40, 64, 65, 300])):
        grown = nests[level % len(nests)].replace("@", text) + tails[level % len(nests)]
        if len(grown) > LONGEST:
            break
        text = grown
    return random.choice(FRAMES).replace("@", text)


def called_from(depth: int, response: str, gold: str) -> Verdict:
    """The verdict, asked for with that many calls around."""
    return called_from(depth - 1, response, gold) if depth else grade(response, gold)


def free_calls() -> int:
    """How many calls the stack still has room for."""
    depth, frame = 0, sys._getframe()
    while frame := frame.f_back:
        depth += 1
    return sys.getrecursionlimit() - depth


@pytest.mark.filterwarnings("error:the maths verifier")
@pytest.mark.parametrize("seed", [9, 13, 21, 31])  # each met a failure once
def test_no_tower_of_constructs_makes_a_verdict_fail(seed):
    chance = random.Random(seed)
    for _ in range(40):
        response, gold = tower(chance), chance.choice(GOLDS)
        assert grade(response, gold).status in STATUSES, (response, gold)
        ballot(response)


@pytest.mark.filterwarnings("error:the maths verifier")
@pytest.mark.parametrize("levels", [4, 6])
@pytest.mark.parametrize("piece", ["/2*3", "*3/2", "/2", r"\pm1", "^2", "!"])
def test_brackets_of_long_products_are_wrong_and_no_failure(piece, levels):
    for count in (20, 38):
        text = "(" * levels + "1" + (piece * count + ")") * levels
        for response in (rf"\boxed{{\pm{text}}}", rf"\boxed{{x={text}}}", rf"\boxed{{{text},2}}"):
            for gold in ("7341", r"\sqrt{7}", "1,2,3"):
                assert grade(response, gold).status in {"wrong", "unparsable"}, (response, gold)


def test_verdicts_are_the_same_from_deep_in_the_stack():
    deep = r"\sqrt{" * 40 + "2" + "}" * 40
    pairs = [(r"\boxed{1/2}", "0.5"), (r"It is $\boxed{x^2+1}$.", "1+x^2"), (f"The answer is ${deep}$.", "2")]
    pairs += [("f(" * 30 + "x" + ")" * 30, "3"), (r"\boxed{\text{\text{\text{7}}}}", "7")]
    for response, gold in pairs:
        here = grade(response, gold).status
        # a few calls must be left, to begin a thread
        assert all(
            called_from(free_calls() - left, response, gold).status == here for left in range(35, 400, 9)
        )


def test_verdicts_are_the_same_in_a_thread_with_a_small_stack():
    texts = [tower(random.Random(seed)) for seed in range(15)]
    here, there = [grade(text, "2").status for text in texts], []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: there.extend(grade(text, "2").status for text in texts))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert there == here


def test_looking_a_large_answer_over_at_every_level_is_too_much_work():
    wide = "+".join(rf"\frac{{x_{n}}}{{y+{n}}}" for n in range(200))
    tower, other = ("(1," * 21 + wide + last + ")" * 21 for last in ("+z", "+2z"))
    assert "too much work" in grade(rf"\boxed{{{tower}}}", other).detail
