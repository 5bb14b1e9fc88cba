"""Values that nobody expects, and requests in which something is gone or another thing."""

from collections.abc import Sequence
from random import Random
from typing import Any

SURROGATE = "\ud800"
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 10**18, 10**30, -(2**63), 1e300, "", "-", "\0", "🎈" * 50, "x" * 5_000, [], {}),
    *([[]], {"": {}}, [None] * 100, {"type": "send"}, "NaN", SURROGATE, f"a{SURROGATE}b"),
]
RAW_VALUES = [
    *("NaN", "Infinity", "-0", "1e999", "-1e-999", "9" * 400, "9" * 5_000, "0." + "1" * 5_000, "01", "0x1", "'x'"),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', "[" * 50 + "]" * 50, "[" * 5_000 + "]" * 5_000, "[" * 3_000, "{"),
    *('{"a":' * 2_000 + "1" + "}" * 2_000, "tru", "/**/1", '{"a":1,"a":2}', '"\t"', '"\\x"', ",", "\ufeff1"),
]


def mutate(value: Any, random: Random) -> Any:
    """Something in it is gone, or another thing."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        change = random.random()
        if change < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        if change < 0.3:
            return {**value, random.choice(["", "type", "id", key.upper(), "more"]): random.choice(ODD_VALUES)}
        return {**value, key: mutate(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        return [*value[:place], mutate(value[place], random), *value[place + random.choice([0, 1]) :]]
    return random.choice(ODD_VALUES)


def garble(text: str, random: Random) -> str:
    place = random.randrange(len(text) + 1)
    match random.randrange(5):
        case 0:
            return text[:place]
        case 1:
            return text[:place] + random.choice(['"', "\\", "}", "[", "\0", "é", SURROGATE, "\x7f"]) + text[place:]
        case 2:
            return text[:place] + text[place + random.randrange(1, 5) :]
        case 3:
            return text + random.choice([text, " ", "}", ",", "null"])
        case _:
            return text[:place] + random.choice(RAW_VALUES) + text[place + 1 :]


def random_json(random: Random, names: Sequence[str], depth: int = 0) -> Any:
    if depth > 4 or random.random() < 0.4:
        return random.choice(ODD_VALUES)
    if random.random() < 0.7:
        return {random.choice(names): random_json(random, names, depth + 1) for _ in range(random.randrange(4))}
    return [random_json(random, names, depth + 1) for _ in range(random.randrange(4))]
