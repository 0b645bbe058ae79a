"""An environment of two to four turns, written to a file as a user would."""

WORLD = '''
import asyncio, random
from dataclasses import replace
from foresail.agents.environment import Observation, ToolUse
from foresail.records import Message

class Again:
    """Asks for the answer once more, unless it has been given twice."""

    def reset(self, problem):
        self.asked = 0

    async def step(self, response):
        self.asked += 1
        return Observation(messages=(Message(role="tool", content="7"),), done=self.asked == 2)

    def close(self): ...

class Late(Again):
    """Answers after waits; how many turns there are follows from what was said."""

    seed = "late"

    async def step(self, response):
        await asyncio.sleep(random.Random(f"{self.seed} {self.asked} {response}").random() / 50)
        use = ToolUse(tool="t", seconds=0.0, error="seven" if "7" in response else "")
        said = await super().step(response)
        return replace(said, done=said.done or "1" in response, uses=(use,))

class Later(Late):
    """The same after other waits."""

    seed = "later"

class Ends(Again):
    async def step(self, response):
        return Observation(done=True)

class Rewards(Again):
    """Pays half for each turn that has a 7 in it, and says nothing of others."""

    async def step(self, response):
        said = await super().step(response)
        return replace(said, reward=0.5 if "7" in response else None)

class Broken(Again):
    async def step(self, response):
        raise OSError("the corpus is gone")
'''
