"""No order of facts breaks a promise of live mode, and the walk through them all notices each mistake."""

import pickle

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.live_facts import ModelEvent
from protocol import live_worlds
from protocol.live_books import Scene
from protocol.live_exploration import SCENES, explore, fingerprint
from protocol.live_mistakes import PLANTED
from protocol.live_worlds import World
from support.apps import figure

scenes = pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])


@pytest.mark.figures
@scenes
def test_no_order_of_facts_breaks_a_promise(scene: Scene) -> None:
    explored = explore(scene, figure(20_000))
    assert explored.worlds > 900
    assert explored.depth >= 7


# --- the short cut for more of the same


BETWEEN = [None, facts.InterruptedByUser(), facts.LeaseLost(), facts.Over()]


@pytest.mark.figures
@scenes
def test_the_short_cuts_do_what_the_long_way_does(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = played = written = 0

    def compare(world: World) -> None:
        nonlocal taken, written
        written += compare_text(world)
        short, long = pickle.loads(pickle.dumps(world)), pickle.loads(pickle.dumps(world))
        if world.books.is_over or not short.turns.voice_came("voice"):
            return
        taken += 1
        came = long.turns.receive(facts.Came(ModelEvent("voice", is_said=True, is_partial=taken % 2 == 0)))
        (belongs,) = [effect for effect in came if not isinstance(effect, effects.Forget)]
        assert belongs == effects.Belongs("voice", world.spoken_in, world.turns.routes.step)
        short.turns._forget_ended()  # pyright: ignore[reportPrivateUsage] -- the next event does that
        short.turns._effects.clear()  # pyright: ignore[reportPrivateUsage]
        assert state_of(short) == state_of(long)
        compare_emitted(short, long, BETWEEN[taken % len(BETWEEN)])

    def compare_emitted(short: World, long: World, between: facts.Fact | None) -> None:
        nonlocal played
        if between is not None:
            assert short.turns.receive(between) == long.turns.receive(between)
        named, written = short.turns.voice_emitted("voice"), long.turns.receive(facts.Emitted("voice"))
        if named is None:  # it is reported after all
            assert short.turns.receive(facts.Emitted("voice")) == written
        else:
            played += 1
            assert written == [effects.Write(named, "voice")]
        assert state_of(short) == state_of(long)

    monkeypatch.setattr(live_worlds, "check", compare)
    explore(scene, figure(5_000))
    assert taken > 2
    assert played > 0
    assert written > 1


def compare_text(world: World) -> bool:
    """One more piece of text, past ADK and through it."""
    short, long = pickle.loads(pickle.dumps(world)), pickle.loads(pickle.dumps(world))
    named = None if world.books.is_over else short.turns.more_said()
    if named is None:
        return False
    long.turns.receive(facts.Came(ModelEvent("text", is_said=True, is_partial=True)))
    assert long.turns.receive(facts.Emitted("text")) == [effects.Write(named, "text")]
    short.turns._forget_ended()  # pyright: ignore[reportPrivateUsage] -- the next event does that
    short.turns._effects.clear()  # pyright: ignore[reportPrivateUsage]
    assert state_of(short) == state_of(long)
    return True


def state_of(world: World) -> tuple[bytes, bool, str]:
    routes = world.turns.routes
    return fingerprint(world), routes._is_speaking, routes.step  # pyright: ignore[reportPrivateUsage]


# --- would it notice?


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_exploration_finds_a_mistake(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, name, broken_promise = PLANTED[mistake]
    (scene,) = (scene for scene in SCENES if scene.name == name)
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=broken_promise):
        explore(scene, 2_000)
