from typing import Any

import pytest

from adk_stream_protocol.demo.phrases import is_japanese, plan_calls, wants_reasoning, wants_story


def payment(amount: float, recipient: str) -> tuple[str, dict[str, Any]]:
    return "process_payment", {"amount": amount, "recipient": recipient, "currency": "USD"}


def weather(location: str) -> tuple[str, dict[str, Any]]:
    return "get_weather", {"location": location}


def music(track: int) -> tuple[str, dict[str, Any]]:
    return "change_bgm", {"track": track}


LOCATION: tuple[str, dict[str, Any]] = ("get_location", {})
ALICE, BOB, HANAKO = payment(30, "Alice"), payment(40, "Bob"), payment(50, "Hanako")


@pytest.mark.parametrize(
    ("phrase", "rounds"),
    [
        ("What is the weather in Tokyo?", [[weather("Tokyo")]]),
        ("WHAT IS THE WEATHER IN TOKYO?", [[weather("TOKYO")]]),
        ("how's the weather in New York City?", [[weather("New York City")]]),
        ("How’s the weather in Paris today?", [[weather("Paris")]]),
        ("What's the weather like in São Paulo tomorrow, please?", [[weather("São Paulo")]]),
        ("Paris weather please", [[weather("Paris")]]),
        ("Is it raining in Oslo?", [[weather("Oslo")]]),
        ("What is the weather in St. Louis?", [[weather("St. Louis")]]),
        ("What's the weather in Tokyo and Paris?", [[weather("Tokyo"), weather("Paris")]]),
        ("東京の天気は？", [[weather("東京")]]),
        ("今日の東京の天気を教えてください", [[weather("東京")]]),
        ("Send 50 dollars to Hanako", [[HANAKO]]),
        ("pay $50 to Hanako", [[HANAKO]]),
        ("Please transfer 50 USD to Hanako, thanks!", [[HANAKO]]),
        ("Could you make a payment of 50 dollars to Hanako?", [[HANAKO]]),
        ("send Alice 30 dollars", [[ALICE]]),
        ("PAY ALICE 30 DOLLARS", [[payment(30, "ALICE")]]),
        ("Send $1,250.50 to Hanako Yamada for the rent.", [[payment(1250.5, "Hanako Yamada")]]),
        ("Send -5 dollars to Bob", [[payment(-5, "Bob")]]),
        ("Pay Dr. Smith $20", [[payment(20, "Dr. Smith")]]),
        ("Send 20 dollars to Mrs. Jones", [[payment(20, "Mrs. Jones")]]),
        ("Ｐａｙ Ａｌｉｃｅ ＄３０", [[ALICE]]),
        ("花子さんに50ドル送金してください", [[payment(50, "花子")]]),
        ("５０ドルを花子さんに送ってください", [[payment(50, "花子")]]),
        ("Pay Alice 30 dollars and Bob 40 dollars", [[ALICE, BOB]]),
        ("Pay Alice 30 dollars, Bob 40 dollars", [[ALICE, BOB]]),
        ("Send $30 to Alice and $40 to Bob", [[ALICE, BOB]]),
        ("Aliceに30ドル、Bobに40ドル送金してください", [[ALICE, BOB]]),
        ("Pay Alice 30 dollars, then Bob 40 dollars", [[ALICE], [BOB]]),
        ("Pay Alice 30 dollars and then pay Bob 40 dollars", [[ALICE], [BOB]]),
        ("First pay Alice $30. After that, pay Bob $40.", [[ALICE], [BOB]]),
        ("まずAliceに30ドル送金して、次にBobに40ドル送金してください", [[ALICE], [BOB]]),
        ("Change BGM to track 1", [[music(1)]]),
        ("please play track two", [[music(2)]]),
        ("Switch the background music to 2", [[music(2)]]),
        ("BGMをトラック2に変えて", [[music(2)]]),
        ("What is my location?", [[LOCATION]]),
        ("where am i", [[LOCATION]]),
        ("現在地を教えて", [[LOCATION]]),
        ("Play track 2 and pay Bob 40 dollars", [[music(2), BOB]]),
        ("Pay the music store 50 dollars", [[payment(50, "the music store")]]),
        ("Where am I? Then tell me the weather in Tokyo", [[LOCATION], [weather("Tokyo")]]),
        ("Send 50 euros to Hanako", []),
        ("Pay Bob 40€", []),
        ("花子さんに50円送金してください", []),
        ("What's the weather?", []),
        ("I like this weather", []),
        ("Change the music", []),
        ("Thanks for the payment!", []),
        ("tell me a long story", []),
        ("Hello", []),
        ("", []),
    ],
)
def test_phrase_asks_for_these_calls(phrase: str, rounds: list[list[tuple[str, dict[str, Any]]]]):
    assert read(phrase) == rounds


def test_each_line_is_read_as_a_sentence():
    assert read("Hi there!\n\nPay   Alice 30 dollars\nPay Bob 40 dollars\n") == [[ALICE, BOB]]


def test_only_the_beginning_of_a_very_long_text_is_read():
    assert read("Pay Alice 30 dollars. " + "So it goes. " * 1000 + "Pay Bob 40 dollars.") == [[ALICE]]


@pytest.mark.parametrize("phrase", ["Think about it", "What do you think?", "よく考えてください"])
def test_reasoning_is_wanted(phrase: str):
    assert wants_reasoning(phrase)


@pytest.mark.parametrize("phrase", ["tell me a long story", "Write a STORY about a long story", "物語を聞かせて"])
def test_story_is_wanted(phrase: str):
    assert wants_story(phrase)


@pytest.mark.parametrize("phrase", ["Hello", "Rethinking the storage", "こんにちは"])
def test_neither_reasoning_nor_story_is_wanted(phrase: str):
    assert not wants_reasoning(phrase)
    assert not wants_story(phrase)


def test_kana_make_a_text_japanese_and_foreign_names_do_not():
    assert is_japanese("東京の天気は？")
    assert not is_japanese("What is the weather in 東京?")


def read(text: str) -> list[list[tuple[str, dict[str, Any]]]]:
    return [[(call.name, call.args) for call in calls] for calls in plan_calls(text)]
