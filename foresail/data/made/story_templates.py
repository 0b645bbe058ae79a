"""The templates of `word_problems`, by operation and split.

{p} and {q} are two people, {t} the things that are counted, {a} and {b} the numbers; the answer is always
`a operation b`. Templates without {t} count something of their own.
"""

from __future__ import annotations

PEOPLE = tuple(
    "Maria Ken Aisha Tom Lin Omar Rosa Ben Priya Jack Mei Carlos Anna Sam Fatima Leo Nina David Sara Paul Ines "
    "Hugo Tara Felix Zoe Ivan Lucy Amir Ella Noah Ruth Otto Grace Kofi Hana Erik Julia Max Leila Oscar".split()
)
THINGS = tuple(
    "apples|marbles|stickers|pencils|books|cookies|shells|stamps|coins|beads|buttons|oranges|cards|balloons|plums|"
    "toy cars|postcards|eggs|crayons|flowers|stones|muffins|badges|tickets|photos|magnets|lemons|candles|ribbons|"
    "tulips".split("|")
)

TEMPLATES: dict[str, dict[str, tuple[str, ...]]] = {
    "+": {
        "train": (
            "{p} has {a} {t} and buys {b} more. How many {t} does {p} have now?",
            "{p} has {a} {t}. {q} gives {p} {b} {t}. How many {t} does {p} have in total?",
            "There are {a} {t} in one box and {b} {t} in another. How many {t} are there in both boxes?",
            "On Monday {p} found {a} {t}. On Tuesday {p} found {b} more. How many {t} did {p} find in all?",
            "{p} collected {a} {t} and {q} collected {b} {t}. How many {t} did they collect together?",
            "A shop sold {a} {t} in the morning and {b} {t} in the afternoon. How many {t} did it sell?",
            "{p} read {a} pages yesterday and {b} pages today. How many pages did {p} read altogether?",
            "{p} drove {a} miles before lunch and {b} miles after lunch. How many miles did {p} drive?",
            "There were {a} people on the bus. Then {b} more people got on. How many people are on the bus now?",
            "{p} is {a} years old. How old will {p} be in {b} years?",
            "{p} spent ${a} on shoes and ${b} on a hat. How many dollars did {p} spend in total?",
            "A farmer has {a} cows and {b} sheep. How many animals does the farmer have?",
            "{p} has {b} more {t} than {q}. {q} has {a} {t}. How many {t} does {p} have?",
            "A school has {a} boys and {b} girls in the choir. How many children are in the choir?",
        ),
        "test": (
            "A basket holds {a} {t}. {p} puts {b} more {t} into it. How many {t} does the basket hold now?",
            "{p} scored {a} points in the first game and {b} points in the second. How many points is that in all?",
            "A train has {a} passengers, and {b} more get in at the station. How many passengers is that?",
            "{p} planted {a} {t} in spring and {b} {t} in autumn. How many {t} did {p} plant this year?",
            "The kitchen needs {a} plates and the hall needs {b} plates. How many plates are needed altogether?",
        ),
    },
    "-": {
        "train": (
            "{p} has {a} {t} and gives {b} of them to {q}. How many {t} does {p} have left?",
            "{p} had {a} {t} and lost {b} of them. How many {t} does {p} have now?",
            "There are {a} {t} on the table. {p} takes {b} away. How many {t} are left on the table?",
            "A shop had {a} {t} and sold {b} of them. How many {t} are left in the shop?",
            "{p} has ${a}. A game costs ${b}. How many dollars will {p} have after buying the game?",
            "There were {a} people in the room and {b} of them went home. How many people are still in the room?",
            "{p} has {a} {t} and {q} has {b} {t}. How many more {t} does {p} have than {q}?",
            "A book has {a} pages. {p} has read {b} pages. How many pages does {p} still have to read?",
            "{p} baked {a} cookies and {q} ate {b} of them. How many cookies are left?",
            "A rope is {a} meters long. {p} cuts off {b} meters. How many meters of rope remain?",
            "{p} and {q} have {a} {t} together. {q} has {b} of them. How many {t} does {p} have?",
            "There are {a} students in the class and {b} of them are girls. How many boys are in the class?",
            "{p} needs {a} {t} and already has {b}. How many more {t} does {p} need?",
            "{p} is {a} years old and {q} is {b} years old. How many years older is {p} than {q}?",
        ),
        "test": (
            "Out of {a} {t} in a bag, {b} are broken. How many {t} are not broken?",
            "{p} wants to walk {a} miles this week and has walked {b} so far. How many miles are left?",
            "A tree had {a} birds in it until {b} flew off. How many birds stayed?",
            "{p} brought {a} {t} to school and came home with {b}. How many {t} did {p} leave at school?",
            "A cinema has {a} seats, of which {b} are taken. How many seats are free?",
        ),
    },
    "*": {
        "train": (
            "{p} buys {a} boxes of {t}. Each box has {b} {t}. How many {t} does {p} buy?",
            "There are {a} bags with {b} {t} in each bag. How many {t} are there in total?",
            "{p} has {a} shelves with {b} books on each shelf. How many books does {p} have?",
            "A ticket costs ${b}. How many dollars do {a} tickets cost?",
            "{p} reads {b} pages every day. How many pages does {p} read in {a} days?",
            "A garden has {a} rows with {b} {t} in each row. How many {t} are in the garden?",
            "{p} earns ${b} an hour. How many dollars does {p} earn in {a} hours?",
            "Each of {a} children gets {b} {t}. How many {t} are given out?",
            "{p} runs {b} miles every week. How many miles does {p} run in {a} weeks?",
            "A van carries {b} people. How many people can {a} vans carry?",
            "{p} puts {b} {t} on each of {a} plates. How many {t} does {p} use?",
            "There are {a} teams with {b} players on each team. How many players are there?",
            "{q} has {b} {t}. {p} has {a} times as many. How many {t} does {p} have?",
            "A baker makes {b} cakes an hour. How many cakes does the baker make in {a} hours?",
        ),
        "test": (
            "{p} packs {a} crates, and {b} {t} go into every crate. How many {t} does {p} pack?",
            "A hotel has {a} floors and {b} rooms on each floor. How many rooms does it have?",
            "Every one of {a} friends brings {b} {t} to the party. How many {t} do they bring?",
            "A pen costs ${b}. {p} buys {a} of them. How many dollars does {p} pay?",
            "{p} practices {b} minutes a day. How many minutes of practice is that in {a} days?",
        ),
    },
    "/": {
        "train": (
            "{p} shares {a} {t} equally among {b} friends. How many {t} does each friend get?",
            "{p} puts {a} {t} into {b} boxes, the same number in each. How many {t} are in each box?",
            "There are {a} students in {b} equal groups. How many students are in each group?",
            "{p} paid ${a} for {b} tickets. How many dollars did each ticket cost?",
            "A book has {a} pages. {p} reads {b} pages a day. How many days does {p} need to read it?",
            "{a} {t} are packed in bags of {b}. How many bags are needed?",
            "{p} earned ${a} in {b} hours. How many dollars did {p} earn an hour?",
            "A farmer plants {a} {t} in {b} equal rows. How many {t} are in each row?",
            "{p} drove {a} miles in {b} hours at the same speed. How many miles did {p} drive each hour?",
            "{p} cuts {a} meters of ribbon into pieces of {b} meters. How many pieces does {p} get?",
            "A teacher gives {a} {t} to {b} children so that all get the same. How many {t} does each child get?",
            "{a} people sit at tables of {b}. How many tables do they need?",
            "{p} has {a} {t}, which is {b} times as many as {q} has. How many {t} does {q} have?",
            "It takes {b} eggs to bake a cake. How many cakes can {p} bake with {a} eggs?",
        ),
        "test": (
            "{a} {t} are split evenly between {b} baskets. How many {t} go into each basket?",
            "{p} saves ${b} every week. How many weeks does {p} need to save ${a}?",
            "A boat can take {b} people at a time. How many trips does it need for {a} people?",
            "{p} arranges {a} {t} in rows of {b}. How many rows does {p} make?",
            "{b} workers share a pay of ${a} fairly. How many dollars does every worker get?",
        ),
    },
}
