/** Reads server-sent events from pieces of text that may end anywhere. */
export interface EventHandlers {
  /** The `data:` of one event. */
  data(text: string): void;
  comment(): void;
}

export class EventReader {
  readonly #handlers: EventHandlers;
  /** Pieces of the line that is not complete. They are joined once, since a line may be a file of megabytes. */
  #pieces: string[] = [];
  #data: string[] = [];

  constructor(handlers: EventHandlers) {
    this.#handlers = handlers;
  }

  feed(text: string): void {
    if (!text.includes("\n")) {
      this.#pieces.push(text);
      return;
    }
    const lines = [...this.#pieces, text].join("").split("\n");
    this.#pieces = [lines.pop()!];
    for (const line of lines) this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  #line(line: string): void {
    if (line === "") {
      if (this.#data.length > 0) this.#handlers.data(this.#data.join("\n"));
      this.#data = [];
    } else if (line.startsWith(":")) {
      this.#handlers.comment();
    } else if (line.startsWith("data:")) {
      this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    }
  }
}
