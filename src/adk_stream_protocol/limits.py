"""Every limit, with its unit and its reason."""

from dataclasses import dataclass, fields
from typing import Any

from .errors import ConfigurationError

MIB = 1024 * 1024


def size(size_bytes: int) -> str:
    """For people."""
    return f"{size_bytes / MIB:g} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:g} KiB"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one bridge. The defaults suit a chat page. Names that end in `_s` are in seconds."""

    max_json_bytes: int = 4 * MIB
    """The request without the contents of its files. A long conversation of stock `useChat` (which posts its
    whole history every time) stays below 1 MiB; four times that is generous."""

    max_file_bytes: int = 20 * MIB
    """One attached file, decoded. Gemini takes 20 MB of inline data in a request."""

    max_socket_file_bytes: int = 11 * MIB
    """One attached file in a frame of a live session, decoded. In base64 it is 14.7 MiB, and fits into a frame."""

    max_frame_bytes: int = 16 * MIB
    """One frame of a live session. Plain uvicorn closes a socket whose frame is larger (`--ws-max-size`)."""

    max_body_bytes: int = 32 * MIB
    """The whole request as it arrives: the JSON above and one file of full size in base64."""

    body_timeout_s: float = 120
    """How long a request may take to arrive. A file of full size over 2 Mbit/s takes as long."""

    max_unfinished_bytes_per_user: int = 64 * MIB
    """The memory in this process for one user's requests until they are decoded: two requests of full size."""

    max_unfinished_bytes: int = 256 * MIB
    """The same for all users' requests, without the first 64 KiB of each: messages without files still get through."""

    max_output_bytes: int = 256 * 1024
    """The output of one browser tool, as JSON. The model reads it with every call that follows."""

    max_run_s: float = 600
    """A run's wall time, after which it ends with a `finish` that says so. Longer than any chat answer takes, and short
    enough to bound the cost of an agent that loops."""

    lease_s: float = 10
    """After this time without a renewal, a worker loses its runs to other workers. A thread renews its leases after a
    third of this time, unless the event loop has hung for a minute. Long enough for a pause of the machine, short
    enough for a person who waits."""

    unread_run_s: float = 120
    """How long a run goes on without a reader, unless a tool is at work. A reload takes seconds, a tunnel a minute.
    0 stops a run with its last reader."""

    drain_s: float = 25
    """How long tools that have started may take when the server shuts down. Orchestrators kill a process 30 s after
    they have asked it to end."""

    max_log_bytes: int = 64 * MIB
    """What one run may write. It stays in memory until the run ends, so that readers can come back. Only generated
    images get near it."""

    max_listed_chats: int = 50
    """How many chats `GET {prefix}` lists, the newest first."""

    max_send_bytes: int = 16 * 1024
    """What a reader takes at a time, and what may wait for it in the server's write buffer. It is copied on its way to
    the socket, so a reader that does not read may cost up to four times as much memory, beside its connection."""

    max_readers_per_run: int = 20
    """Readers of one run at once, in this process: pages of one user that show the same chat, and their lost
    connections until they are noticed."""

    max_runs_per_user: int = 20
    """Chats of one user that answer at once, in this process: request mode and live sessions together."""

    max_waiting_answers_per_user: int = 20
    """Answers of one user to calls that wait for their chats to be free, in this process. Each is recorded."""

    live_grace_s: float = 30
    """How long a live session waits for a client that has lost its socket. A tunnel, or a change of networks."""

    live_silence_s: float = 60
    """How long a live model may be silent after input, while no tool runs and no call waits for somebody. Then the
    session ends with an error."""

    live_resume_s: float = 10
    """How long a live service may take to go on with an answer after its connection was lost. Then the answer ends as
    failed, and the session goes on. Gemini begins to answer in one to three seconds; dialling takes one more."""

    live_short_connection_s: float = 10
    """A live connection that ends sooner, without a word from the model, counts as dropped. Gemini ends connections
    after about ten minutes; those that it refuses to serve last less than a second."""

    max_live_redials: int = 5
    """Dropped connections in a row before a live session ends with an error. ADK itself gives up after five connections
    that are not accepted, but never after connections that are accepted and then dropped."""

    live_backoff_s: float = 0.5
    """The pause before a live model is dialled again after a dropped connection, or after a session that failed without
    a word. It doubles each time. Voice is dropped meanwhile. google-genai repeats a request after one second, doubling;
    a live conversation is less patient."""

    max_live_backoff_s: float = 60
    """The longest such pause, as in google-genai."""

    max_waiting_audio_s: float = 2
    """How much of the user's voice waits for a model that does not take it. Older voice is of no use in a conversation;
    it is dropped and counted."""

    abort_stops_run: bool = True
    """Whether an `abort` on a WebSocket stops the run. A stock Stop button sends nothing else there; React pages with
    the AI SDK 7 send it also when the user leaves them."""

    max_sockets_per_user: int = 5
    """Live sockets of one user: pages that are open at once, and one that is just being replaced."""

    max_live_sessions_per_user: int = 10
    """Live sessions of one user at once, in this process. Each has a connection to the model that is billed while it
    is open, and Gemini's smallest tiers allow a project three and fifty of them. Two for each socket: the one in use,
    and one that waits for its client (`live_grace_s`)."""

    max_chats_per_socket: int = 5
    """Chats whose live sessions one socket keeps open. A page shows one chat, or a few side by side. Stock clients
    cannot detach, so the chat that such a client has not used for the longest time is left for the next one."""

    max_audio_frame_bytes: int = 32 * 1024
    """One frame of voice: a second of it. Clients send a tenth of that at most."""

    voice_quiet_s: float = 15
    """An open microphone sends voice all the time, also while nobody speaks. If a client has sent none for this long,
    its microphone was closed without `voice-end`, and another client that asks gets the voice of the chat."""

    login_check_s: float = 300
    """How often a socket's user is looked up again. The socket of a user who has signed out is closed."""

    max_frames_per_s: int = 50
    """Frames of one socket beside voice, as an average over ten seconds. People type slower, and browsers answer calls
    slower."""

    max_audio_frames_per_s: int = 200
    """Frames of voice of one socket, as an average over ten seconds. Clients usually send at most one every 10 ms."""

    send_timeout_s: float = 30
    """How long one send may take. A slower reader is disconnected, and may resume."""

    ping_interval_s: float = 15
    """Silence after which a comment is sent, so that proxies (60 s in nginx) keep the stream open."""

    allowed_file_urls: tuple[str, ...] = ()
    """Prefixes of file URLs that may be handed to the model beside `data:`, such as `gs://my-bucket/`. The
    bridge itself fetches none of them; the model service does."""

    threaded_decode_bytes: int = 256 * 1024
    """Requests and frames above this are decoded off the event loop: 20 MiB of base64 block it for 0.1 s."""

    def __post_init__(self) -> None:
        require_numbers(self)
        for prefix in self.allowed_file_urls:
            if not prefix.endswith("/"):  # https://cdn.example would allow https://cdn.example.evil
                raise ConfigurationError(f"An allowed file URL ends with a slash, unlike {prefix!r}.")


def require_numbers(options: Any) -> None:
    """Every option whose default is a number is one, too. A text from the environment would fail at some request."""
    for option in fields(options):
        value = getattr(options, option.name)
        if _is_number(option.default) and not (_is_number(value) and value >= 0):
            raise ConfigurationError(
                f"{type(options).__name__}({option.name}=...) must be a number from 0 on, not {value!r}."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
