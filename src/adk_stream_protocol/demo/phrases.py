"""What a text asks the offline model for, in English and Japanese."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

# In characters. The patterns below are made for sentences: on pages of text they would be slow.
_LONGEST_REQUEST = 1000

# A point ends a sentence, but not in "Dr. Smith" and "St. Louis".
_SENTENCE_END = r"(?<!\b(?:Dr|Mr|Ms|St|Mt))(?<!\bMrs)[.!?。]+(?:\s+|$)"
_ONE_AFTER_THE_OTHER = re.compile(
    rf"(?:{_SENTENCE_END}|[,;、]\s*|\s+)?(?:\band\s+)?"
    r"(?:\b(?:then|after\s+that|afterwards|followed\s+by)\b,?\s*|その後|そのあと|それから|次に)、?",
    re.I,
)
# A comma separates two wishes only before a number: "Alice 30 dollars, Bob 40 dollars", not "Washington, D.C.".
_TOGETHER = re.compile(
    rf"\s*,?\s+(?:and|plus|&)\s+|[,;]\s+(?=[^,;]*\d)|(?<![にへ])、|(?<=ドル)と|{_SENTENCE_END}", re.I
)

_PAYMENT_VERB = r"\b(?:send|pay|transfer|wire|give|payment(?:\s+of)?)\b"
_PAYMENT_WORD = re.compile(rf"{_PAYMENT_VERB}|送金|送って|送り|支払|払って|払い|振り?込", re.I)
_UP_TO_PAYMENT_VERB = re.compile(rf"^.*?{_PAYMENT_VERB}\s*", re.I)
# A number without a unit is in dollars. With another unit ("30 euros", "30円") it is no amount that we know.
_AMOUNT = (
    r"(?:US\$|\$|USD)?\s*(?P<amount>-?\d{1,12}(?:,\d{3})*(?:\.\d+)?)(?![.,]?\d)"
    r"(?:\s*(?:(?:US )?dollars?\b|USD\b|bucks?\b|\$|ドル)"
    r"|(?=\s*(?:to|for|each|please|now)\b)|(?!\s*(?:[^\W\d]|[€£¥])))"
)
_HONORIFIC = r"(?:さん|さま|様|くん|君|ちゃん|氏)?"
_PAYMENT_FORMS = [
    re.compile(form, re.I)
    for form in (
        rf"^{_AMOUNT}(?:\s+each)?\s+to\s+(?P<name>[^,]+?)(?:,|\s+(?:for|from|please|now|today|right|via)\b|[.!?]*$)",
        rf"^(?!(?:me|us)\b)(?P<name>[^\W\d][^\s,]*(?:\s+[^\W\d][^\s,]*){{0,2}})\s+{_AMOUNT}",
        rf"(?:まず)?(?P<name>[^\s、。にへをと]{{1,40}}?){_HONORIFIC}[にへ]、?\s*{_AMOUNT}",
        rf"{_AMOUNT}を?\s*(?P<name>[^\s、。にへを]{{1,40}}?){_HONORIFIC}[にへ]",
    )
]

_MUSIC = re.compile(
    r"(?:\b(?:bgm|track|(?:change|switch|set|play)\b.*\b(?:music|song))|トラック|音楽|曲)"
    r"\D{0,30}?(?P<track>\d{1,6}(?!\d)|\b(?:one|two)\b)",
    re.I,
)
_TRACK_WORDS = {"one": 1, "two": 2}

_LOCATION = re.compile(
    r"\bwhere\s+(?:am\s+i|i\s+am|are\s+we)\b|\bmy\s+(?:\w+\s+)?(?:location|position)\b|\blocate\s+me\b"
    r"|現在地|現在位置|今どこ|ここはどこ|私の(?:位置|場所|居場所)",
    re.I,
)

_POLITE = r"please|thanks|thank\s+you|like|currently"
_TIME = re.compile(
    r"\s*\b(?:for\s+|at\s+)?(?:(?:right\s+)?now|today|tonight|tomorrow"
    r"|this\s+(?:morning|afternoon|evening|week(?:end)?))(?:'s)?\b|(?:今日|明日|現在|今)の",
    re.I,
)
_WEATHER_TOPIC = r"\b(?:weather|forecast|temperature|rain(?:ing|y)?|snow(?:ing|y)?|sunny|how\s+(?:hot|cold|warm))\b"
_WEATHER_FORMS = [
    re.compile(form, re.I)
    for form in (
        rf"{_WEATHER_TOPIC}.*?\b(?:in|for|at|of)\s+(?P<place>[^?!]{{1,80}}?)(?:,?\s+(?:{_POLITE})\b.*)?[\s,.?!]*$",
        r"^\W*(?:(?:what's|what\s+is|how's|how\s+is|show|tell|give|get|check|me|us|the|current|please)\s+)*"
        r"(?!(?:i|we|you|it|about|like|the|what|what's|how|how's|is)\b)"
        rf"(?P<place>[^\W\d][\w'.-]*(?:\s+[\w'.-]+){{0,3}}?)(?:'s)?\s+(?:weather|forecast)(?:,?\s+(?:{_POLITE}))*\W*$",
        r"(?P<place>[^\s、。!?の]+)の(?:天気|気温)",
    )
]
_ANOTHER_PLACE = re.compile(r"^(?:in\s+)?(?P<place>[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*){0,2})[\s.?!]*$")

_THINKING = re.compile(r"\bthink\b|考えて", re.I)
_STORY = re.compile(r"\b(?:tell|write|long)\b.*\bstory\b|長い話|物語", re.I)
_KANA = re.compile(r"[぀-ヿ]")


@dataclass(frozen=True)
class PlannedCall:
    name: str
    args: dict[str, Any]


def plan_calls(text: str) -> list[list[PlannedCall]]:
    """The calls that the text asks for. Those of an inner list are made together, the lists one after the other."""
    text = _readable(text)
    about_money = _PAYMENT_WORD.search(text) is not None
    rounds: list[list[PlannedCall]] = []
    for stage in _ONE_AFTER_THE_OTHER.split(text):
        calls: list[PlannedCall] = []
        for wish in _TOGETHER.split(stage):
            call = _payment(wish) if _PAYMENT_WORD.search(wish) else None
            call = call or _music(wish) or _location(wish) or _weather(wish)
            if not call and about_money:  # "... and Bob 40 dollars"
                call = _payment(wish)
            if not call and calls and calls[-1].name == "get_weather":  # "... and Paris"
                call = _weather_of(_ANOTHER_PLACE.match(wish))
            if call:
                calls.append(call)
        if calls:
            rounds.append(calls)
    return rounds


def wants_reasoning(text: str) -> bool:
    return _THINKING.search(_readable(text)) is not None


def wants_story(text: str) -> bool:
    return _STORY.search(_readable(text)) is not None


def is_japanese(text: str) -> bool:
    return _KANA.search(_readable(text)) is not None


def _readable(text: str) -> str:
    # Full-width digits, letters and signs become ASCII, each line a sentence, and each gap one space.
    plain = unicodedata.normalize("NFKC", text[:_LONGEST_REQUEST]).replace("’", "'")
    return ". ".join(" ".join(line.split()) for line in plain.splitlines())


def _payment(wish: str) -> PlannedCall | None:
    wish = _UP_TO_PAYMENT_VERB.sub("", wish).strip()
    match = _first_match(_PAYMENT_FORMS, wish)
    if not match:
        return None
    amount = float(match["amount"].replace(",", ""))
    return PlannedCall(
        "process_payment",
        {
            "amount": int(amount) if amount.is_integer() else amount,
            "recipient": match["name"].strip(),
            "currency": "USD",
        },
    )


def _music(wish: str) -> PlannedCall | None:
    match = _MUSIC.search(wish)
    if not match:
        return None
    track = match["track"].lower()
    return PlannedCall("change_bgm", {"track": _TRACK_WORDS.get(track) or int(track)})


def _location(wish: str) -> PlannedCall | None:
    return PlannedCall("get_location", {}) if _LOCATION.search(wish) else None


def _weather(wish: str) -> PlannedCall | None:
    return _weather_of(_first_match(_WEATHER_FORMS, _TIME.sub("", wish)))


def _weather_of(match: re.Match[str] | None) -> PlannedCall | None:
    return PlannedCall("get_weather", {"location": match["place"].strip()}) if match else None


def _first_match(forms: list[re.Pattern[str]], wish: str) -> re.Match[str] | None:
    return next((match for form in forms if (match := form.search(wish))), None)
