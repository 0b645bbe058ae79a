"""The multi-hop world: every chain leads to its answer, nothing shorter does, and splits never meet."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from foresail.data.chats.conversations import load_conversations
from foresail.data.made.multi_hop import HOPS, advances, make_problems
from foresail.data.made.multi_hop_names import (
    FAMILIES,
    GIVEN,
    LEVELS,
    MODIFIERS,
    NOUNS,
    RELIABLE,
    TOWNS,
    UNRELIABLE,
    Person,
    people,
    relations,
)
from foresail.data.made.multi_hop_traces import gold_conversation, noisy_conversation
from foresail.data.made.multi_hop_world import NOTHING, WorldSearch
from foresail.data.problems.problems import load_problems
from foresail.maths.short_answers import grade
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem
from foresail.tokenizer.train import train_bpe

LINE = re.compile(
    r"(?P<source>\S+) (?:(?P<person>\S+ \S+ \S+) (?P<relation>\S+ \S+) )?(?P<value>\S+ \S+ \S+)"
)
WAYS = {
    "train": {},
    "test": {"split": "test"},
    "ood": {"split": "ood"},
    "long": {"split": "long"},
    "detours": {"detours": 4},
    "one hop": {"hops": (1, 1)},
}


def make(way: str, count: int = 60, seed: int = 0) -> list[Problem]:
    return make_problems(count, seed=seed, **WAYS[way])


def find(problem: Problem, query: str) -> list[dict[str, str]]:
    """The documents of a search, read from their text; those that do not say what they are about are about it."""
    matches = [LINE.fullmatch(line) for line in WorldSearch(problem).search(query).splitlines()]
    assert all(matches)
    person, relation = " ".join(query.split()[:3]), " ".join(query.split()[3:])
    rows = [match.groupdict() for match in matches if match]
    found = [row if row["person"] else {**row, "person": person, "relation": relation} for row in rows]
    return [{**row, "key": f"{row['person']} {row['relation']}"} for row in found]


def trusted(problem: Problem, query: str) -> str:
    """What a reader makes of a search who knows the sources and reads with care."""
    (value,) = {
        found["value"]
        for found in find(problem, query)
        if found["key"] == query and found["source"] in RELIABLE
    }
    return value


def chain(problem: Problem) -> tuple[str, list[str]]:
    """Read from the question alone: who it starts from, and its relations."""
    text = re.sub(r"\(also [^)]*\) ?", "", problem.prompt[0].content).replace(" ?", "?").removesuffix("?")
    start, *relations = text.split("'s ")
    return start, relations


# Answers.


@pytest.mark.parametrize("way", WAYS)
def test_following_the_question_by_searches_leads_to_the_answer(way: str) -> None:
    for problem in make(way):
        person, relations = chain(problem)
        assert len(relations) == problem.extra["hops"] == len(set(relations))
        for relation in relations:
            person = trusted(problem, f"{person} {relation}")
        assert person == problem.answer


@pytest.mark.parametrize("way", WAYS)
def test_gold_searches_give_their_values_and_those_that_matter_are_the_chain(way: str) -> None:
    for problem in make(way):
        searches, values, matters = (problem.extra[name] for name in ("searches", "values", "matters"))
        assert [trusted(problem, search) for search in searches] == values
        person, relations = chain(problem)
        needed = [search for search, needs in zip(searches, matters, strict=True) if needs]
        for search, relation in zip(needed, relations, strict=True):
            assert search == f"{person} {relation}"
            person = trusted(problem, search)
        asides = [search for search, needs in zip(searches, matters, strict=True) if not needs]
        assert asides == [
            key.replace("'s", "") for key in re.findall(r"\(also ([^)]*)\)", problem.prompt[0].content)
        ]
        assert len(asides) == WAYS[way].get("detours", 0)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "one hop"])
def test_no_search_but_the_last_of_the_chain_shows_the_answer(way: str) -> None:
    for problem in make(way):
        *earlier, last = [
            search
            for search, needs in zip(problem.extra["searches"], problem.extra["matters"], strict=True)
            if needs
        ]
        words = problem.prompt[0].content.replace("'s", "").strip("?").split()
        of_the_question = [" ".join(words[i : i + n]) for n in (3, 5) for i in range(len(words) - n + 1)]
        asides = [search for search in problem.extra["searches"] if search not in (*earlier, last)]
        for query in (*earlier, *asides, *of_the_question):
            assert problem.answer not in WorldSearch(problem).search(query)
        assert problem.answer in WorldSearch(problem).search(last)


@pytest.mark.parametrize("way", ["train", "test", "long", "detours"])
def test_asides_share_nothing_with_the_chain(way: str) -> None:
    for problem in make(way):
        persons = {chain(problem)[0], *problem.extra["values"]}
        for search, value, needs in zip(
            *(problem.extra[name] for name in ("searches", "values", "matters")), strict=True
        ):
            if not needs:
                texts = WorldSearch(problem).search(search)
                assert not any(person in texts for person in persons - {value})


def test_a_detour_may_be_a_chain_of_its_own() -> None:
    for problem in make_problems(20, seed=0, hops=(2, 3), detours=2, depth=3):
        told = re.findall(r"\(also ([^)]*)\)", problem.prompt[0].content)
        expected = []
        for person, *followed in (aside.split("'s ") for aside in told):
            for relation in followed:
                expected.append(f"{person} {relation}")
                person = trusted(problem, expected[-1])
        matters = problem.extra["matters"]
        found = [
            search for search, needs in zip(problem.extra["searches"], matters, strict=True) if not needs
        ]
        assert found == expected and len(found) == 6 and sum(matters) == problem.extra["hops"]


# Documents.


@pytest.mark.parametrize("way", ["train", "ood"])
def test_unreliable_documents_contradict_the_truth_and_may_outnumber_it(way: str) -> None:
    counts, beside, same_relation = [0, 0, 0], 0, 0
    for problem in make(way, 200):
        for search, value in zip(problem.extra["searches"], problem.extra["values"], strict=True):
            found = find(problem, search)
            lies = [each["value"] for each in found if each["source"] in UNRELIABLE]
            assert value not in lies and len(set(lies)) <= 1
            counts[len(lies)] += 1
            others = [each for each in found if each["key"] != search]
            assert len(found) == 1 + len(lies) + len(others) and len(others) <= 1
            for other in others:
                assert other["source"] in RELIABLE
                assert (other["relation"] in search) != (other["person"] in search)
                same_relation += other["relation"] in search
            beside += len(others)
    assert all(count > 0.15 * sum(counts) for count in counts)
    assert 0.4 < beside / sum(counts) < 0.6 and 0.4 < same_relation / beside < 0.6


def test_believing_one_lie_on_the_way_misses_the_answer() -> None:
    tried = 0
    for problem in [*make("train", 100), *make("long", 30)]:
        person, relations = chain(problem)
        for number, relation in enumerate(relations):
            for each in find(problem, f"{person} {relation}"):
                if each["source"] in UNRELIABLE:
                    astray = each["value"]
                    for later in relations[number + 1 :]:
                        astray = trusted(problem, f"{astray} {later}")
                    assert astray != problem.answer
                    tried += 1
            person = trusted(problem, f"{person} {relation}")
    assert tried > 200


def test_neither_the_order_nor_a_count_tells_the_truth() -> None:
    first = outvoted = searches = 0
    for problem in make("train", 300):
        for search, value in zip(problem.extra["searches"], problem.extra["values"], strict=True):
            told = [each["value"] for each in find(problem, search) if each["key"] == search]
            first += told[0] == value
            outvoted += told.count(value) * 2 < len(told)
            searches += 1
    assert 0.45 < first / searches < 0.75 and outvoted / searches > 0.15


def test_the_answer_tells_something_of_every_choice_before_it() -> None:
    """What a teacher who knows the answer goes by: its town tells of the lender, its family of the landlord."""
    choices = 0
    for problem in make("train", 200):
        for search, value in list(zip(problem.extra["searches"], problem.extra["values"], strict=True))[:-1]:
            first = 2 if NOUNS[search.split()[-1]] == "remote" else 1
            kept = problem.answer.split()[first:]
            assert value.split()[first:] == kept
            lies = [each["value"] for each in find(problem, search) if each["source"] in UNRELIABLE]
            assert all(lie.split()[first:] != kept for lie in lies)
            choices += bool(lies)
    assert choices > 100


def test_other_queries_find_nothing() -> None:
    problem, other = make("train", 1)[0], make("test", 1)[0]
    search = problem.extra["searches"][0]
    for query in (
        "",
        "Ana",
        search.lower(),
        f"{search} please",
        f"{search} {search}",
        other.extra["searches"][0],
    ):
        assert WorldSearch(problem).search(query) == NOTHING
    assert WorldSearch(problem).search(f"  {search.replace(' ', '  ')}\n") == WorldSearch(problem).search(
        search
    )


def test_a_problem_of_another_source_is_refused() -> None:
    with pytest.raises(ValueError, match="the problem has no 'world', so it is none of multi-hop"):
        WorldSearch(Problem(id="1", prompt=(), answer="7"))


# Splits.


def names_in(problems: list[Problem]) -> tuple[set[str], set[str]]:
    """Every person and every relation that searches of the chain and wrong turns from it show."""
    persons, relations = set(), set()
    for problem in problems:
        for search in problem.extra["searches"]:
            for each in find(problem, search):
                persons |= {each["person"], each["value"]}
                relations.add(each["relation"])
    return persons, relations


def test_people_and_relations_of_the_splits_never_meet() -> None:
    train, test, ood, long = (
        names_in([problem for seed in range(2) for problem in make(split, 150, seed)]) for split in HOPS
    )
    for held_out in (test, ood, long):
        assert not train[0] & held_out[0] and len(held_out[0]) > 300
    assert not train[1] & ood[1]
    assert test[1] == train[1] >= long[1] and len(train[1]) == 36 and len(ood[1]) == 18
    words = {word for relation in train[1] for word in relation.split()}
    assert {word for relation in ood[1] for word in relation.split()} <= words
    assert {word for person in test[0] for word in person.split()} <= {
        word for person in train[0] for word in person.split()
    }


def test_chains_have_the_lengths_of_their_split() -> None:
    for split, (fewest, most) in HOPS.items():
        found = {problem.extra["hops"] for problem in make_problems(60, seed=0, split=split)}
        assert found == set(range(fewest, most + 1))
    assert HOPS["train"][1] < HOPS["long"][0]


def test_every_person_and_relation_belongs_to_one_side() -> None:
    for family in FAMILIES:
        for town in TOWNS:
            sides = [people(family, town, held_out=held_out) for held_out in (True, False)]
            assert sorted((*sides[0], *sides[1])) == sorted(GIVEN) and len(sides[0]) == 6
    pairs = [
        relation for side in (True, False) for level in LEVELS for relation in relations(level, held_out=side)
    ]
    assert len(pairs) == len(set(pairs)) == len(NOUNS) * len(MODIFIERS)


# Problems as such.


def test_problems_are_distinct_and_stable() -> None:
    problems = make_problems(300, seed=3)
    assert problems == make_problems(300, seed=3) != make_problems(300, seed=4)
    assert make_problems(50, seed=3) == problems[:50]
    assert len({problem.id for problem in problems}) == len({problem.prompt for problem in problems}) == 300
    other_lengths = {problem.id for problem in make_problems(300, seed=3, hops=(4, 4))}
    assert not other_lengths & {problem.id for problem in problems}
    # Written down once: a change of the generator would silently change every run's data.
    first = make_problems(1, seed=0)[0]
    assert (first.prompt[0].content, first.answer) == (
        "Gus Greco Elster's first doctor's new cousin?",
        "Wes Lund Elster",
    )


def test_answers_cannot_be_guessed() -> None:
    answers = [problem.answer for problem in make_problems(1500, seed=0)]
    assert max(answers.count(answer) for answer in set(answers)) < 0.01 * len(answers)


def test_a_problem_that_went_through_a_file_is_searched_alike() -> None:
    for problem in make("detours", 10):
        extra = json.loads(json.dumps(problem.extra))
        back = replace(problem, extra=extra)
        assert gold_conversation(back) == gold_conversation(problem)


def test_advances_are_the_first_searches_of_the_chain_alone() -> None:
    for problem in make("detours"):
        searches, matters = problem.extra["searches"], problem.extra["matters"]
        assert advances(problem, searches) == matters
        assert advances(problem, [*searches, *searches]) == [*matters, *[False] * len(searches)]
        assert advances(problem, ["", f" {searches[0].replace(' ', '  ')} ", "what"]) == [
            False,
            matters[0],
            False,
        ]


# Episodes to imitate.


@pytest.mark.parametrize("way", WAYS)
def test_gold_conversations_search_and_answer_right(way: str) -> None:
    for problem in make(way, 20):
        user, *turns, last = gold_conversation(problem)
        assert (user,) == problem.prompt and grade(last.content, [problem.answer]).status == "correct"
        for (said, found), search in zip(
            zip(turns[::2], turns[1::2], strict=True), problem.extra["searches"], strict=True
        ):
            assert (said.role, said.content) == ("assistant", f"<search>{search}</search>")
            assert (found.role, found.content) == ("tool", WorldSearch(problem).search(search))


def test_noisy_conversations_are_real_episodes_of_a_beginner() -> None:
    problems = make("train", 300)
    right = repeated = early = 0
    for problem in problems:
        _, *turns, last = noisy_conversation(problem, noise=0.5)
        queries = [turn.content.removeprefix("<search>").removesuffix("</search>") for turn in turns[::2]]
        assert [turn.content for turn in turns[1::2]] == [
            WorldSearch(problem).search(query) for query in queries
        ]
        answer = last.content.removeprefix("<answer>").removesuffix("</answer>")
        assert any(answer in turn.content for turn in turns)  # nothing is made up
        right += answer == problem.answer
        repeated += len(set(queries)) < len(queries)
        early += len(queries) < problem.extra["hops"]
    assert 0.2 < right / len(problems) < 0.6 and repeated > 10 and early > 10
    assert [noisy_conversation(problem, noise=0.0) for problem in problems[:20]] == [
        gold_conversation(problem) for problem in problems[:20]
    ]
    assert noisy_conversation(problems[1], noise=0.5) == noisy_conversation(problems[1], noise=0.5)


def test_tool_results_carry_no_loss_and_the_model_learns_to_end_each_turn() -> None:
    conversations = [gold_conversation(problem) for problem in make("detours", 40)]
    tokenizer = train_bpe(
        [message.content for conversation in conversations for message in conversation],
        vocab_size=420,
        whole_tokens=["<search>", "</search>", "<answer>", "</answer>"],
        alphabet="seen",
    )
    for conversation in conversations:
        ids, mask = tokenizer.encode_conversation(conversation)
        learned = tokenizer.decode([token for token, learns in zip(ids, mask, strict=True) if learns])
        said = [message.content for message in conversation if message.role == "assistant"]
        assert learned == "<|end|>".join(said) + "<|end|>"
        assert sum(before < after for before, after in pairwise([0, *mask])) == len(said)


def test_the_source_and_its_mistakes() -> None:
    source = "multi-hop:count=20,seed=2,hops=2-4,split=test,detours=1"
    problems = make_problems(20, seed=2, hops=(2, 4), split="test", detours=1)
    assert load_problems(Problems(source=source)) == problems
    assert load_conversations(source) == [gold_conversation(problem) for problem in problems]
    noisy = load_conversations(f"{source},noise=0.5")
    assert noisy == [noisy_conversation(problem, noise=0.5) for problem in problems]
    for wrong, message in {
        "multi-hop:seed=1": "multi-hop needs a count: multi-hop:count=2000",
        "multi-hop:count=5,split=dev": "unknown split 'dev'; use one of train, test, ood, long",
        "multi-hop:count=0": "count 0 is not between 1 and",
        "multi-hop:count=5,hops=3-2": "hops 3-2 is not a range within 1-10; try 2-3",
        "multi-hop:count=5,hops=40": "hops 40-40 is not a range within 1-10",
        "multi-hop:count=5,detours=-1": "detours -1 is not between 0 and",
        "multi-hop:count=5,depth=0": "depth 0 is not between 1 and",
        "multi-hop:count=5,detours=1,depth=2,noise=0.5": "noise goes with single detours",
        "multi-hop:count=5,noise=2": "noise='2' is not a number from 0 to 1",
        "multi-hop:count=5,noise=much": "noise='much' is not a number from 0 to 1",
        "multi-hop:count=5,hop=2": "unknown multi-hop option 'hop'; did you mean hops",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_problems(Problems(source=wrong))


def test_a_person_reads_as_it_is_written() -> None:
    assert str(Person("Ana", "Adler", "Arden")) == "Ana Adler Arden"
