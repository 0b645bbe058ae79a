"""Text for drafts arrives in other processes as it was said, and is packed once for all of them."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foresail.rollout.drafts.drafting import GroupDrafts
from foresail.rollout.sibling_text import SiblingText

IDS = st.lists(st.integers(0, 2**31 - 1), max_size=50)


@given(IDS)
def test_text_arrives_as_it_was_said(ids):
    text = SiblingText(ids)
    arrived = pickle.loads(pickle.dumps(text))
    assert [*arrived] == [*text] == ids and len(arrived) == len(text) == len(ids)
    assert np.array_equal(np.asarray(text, dtype=np.int64), ids) and np.array_equal(arrived, ids)


class ReadOnce(list):
    reads = 0

    def __iter__(self):
        type(self).reads += 1
        return super().__iter__()


def test_ten_messages_pack_the_text_once():
    text = SiblingText(ReadOnce([1, 2, 3]))
    assert len({pickle.dumps(("learn", text)) for _ in range(10)}) == 1
    assert ReadOnce.reads <= 1


def test_drafts_take_it_as_they_take_a_list():
    said = [3, 1, 4, 1, 5, 9, 2, 6]
    texts = (said, SiblingText(said), pickle.loads(pickle.dumps(SiblingText(said))))
    drafted = []
    for text in texts:
        drafts = GroupDrafts()
        drafts.register(0, [7, 7])
        assert drafts.append(0, "0.1", 0, text) == len(said)
        drafts.append(0, "0.2", 0, [3, 1, 4, 1])
        sizes_R, tokens_RK = drafts.draft_rows([drafts.join(0, "0.2")], 3)
        drafted.append((sizes_R.tolist(), tokens_RK[0, : sizes_R[0]].tolist()))
    assert drafted[0] == drafted[1] == drafted[2] and drafted[0][0][0] > 0
