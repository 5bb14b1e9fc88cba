/** Markdown as React elements. Raw HTML is shown as the text that it is; nothing here sets `innerHTML`. */
import type { Token, Tokens } from "marked";
import { Fragment, memo, type ReactNode, useMemo } from "react";
import { CodeBlock } from "./CodeBlock.tsx";
import { decodeEntities, lex } from "./markdown-tokens.ts";
import { imageSource, linkTarget } from "./safe-urls.ts";

export const Markdown = memo(function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const blocks = useMemo(() => lex(text, isStreaming), [text, isStreaming]);
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] gap-3">
      {blocks.map((token, index) => token.type !== "space" && <Block key={index} token={token} />)}
    </div>
  );
});

/** While a text grows, only its last block is drawn again. */
const Block = memo(
  ({ token }: { token: Token }) => block(token),
  (before, after) => before.token.raw === after.token.raw && before.token.type === after.token.type,
);

const SIZES = ["text-xl", "text-lg", "text-base"];

function block(token: Token): ReactNode {
  switch (token.type) {
    case "heading": // all of one level, below those of the page: models skip levels, and a page must not
      return <h3 className={`mt-1 font-semibold ${SIZES[token.depth - 1] ?? ""}`}>{inline(token.tokens)}</h3>;
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "code":
      return <CodeBlock code={token.text} language={token.lang} />;
    case "blockquote":
      return (
        <blockquote className="grid gap-2 border-l-2 border-line pl-3 text-ink-2">{blocks(token.tokens)}</blockquote>
      );
    case "list":
      return <List list={token as Tokens.List} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr className="border-line" />;
    case "space":
    case "def":
      return null;
    case "text":
      return token.tokens ? inline(token.tokens) : decodeEntities(token.text);
    default:
      return <p className="whitespace-pre-wrap">{token.raw.trimEnd()}</p>;
  }
}

function blocks(tokens: Token[] = []): ReactNode[] {
  return tokens.map((token, index) => <Block key={index} token={token} />);
}

function List({ list }: { list: Tokens.List }) {
  const Items = list.ordered ? "ol" : "ul";
  const isTasks = list.items.every((item) => item.task);
  const marker = isTasks ? "" : list.ordered ? "list-decimal pl-6" : "list-disc pl-5";
  return (
    <Items className={`grid gap-1 ${marker}`} start={list.ordered && list.start !== "" ? list.start : undefined}>
      {list.items.map((item, index) => (
        <li key={index} className={item.task ? "flex items-baseline gap-2" : undefined}>
          {item.task && (
            <input type="checkbox" disabled checked={item.checked} aria-label={item.checked ? "Done" : "To do"} />
          )}
          <div className="grid min-w-0 gap-1">{items(item.tokens)}</div>
        </li>
      ))}
    </Items>
  );
}

/** Texts of a tight list are no paragraphs. */
function items(tokens: Token[]): ReactNode[] {
  return tokens.map((token, index) =>
    token.type === "checkbox" ? null : token.type === "text" ? (
      <span key={index}>{block(token)}</span>
    ) : (
      <Block key={index} token={token} />
    ),
  );
}

function Table({ table }: { table: Tokens.Table }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="group" aria-label="Table">
      <table className="w-full border-collapse text-left">
        <thead>
          <tr className="border-b border-line-strong">{table.header.map((cell, index) => tableCell(cell, index))}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index} className="border-b border-line last:border-0">
              {row.map((cell, column) => tableCell(cell, column))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function tableCell(cell: Tokens.TableCell, index: number): ReactNode {
  const Cell = cell.header && cell.text !== "" ? "th" : "td";
  const align = cell.align === "right" ? "text-right" : cell.align === "center" ? "text-center" : "";
  return (
    <Cell key={index} className={`py-1.5 pr-4 font-normal last:pr-0 [th&]:font-semibold ${align}`}>
      {inline(cell.tokens)}
    </Cell>
  );
}

function inline(tokens: Token[] = []): ReactNode[] {
  return tokens.map((token, index) => <Fragment key={index}>{inlineToken(token)}</Fragment>);
}

function inlineToken(token: Token): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong className="font-semibold">{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code className="rounded bg-paper-2 px-1 py-0.5 font-mono text-[0.9em]">{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link address={decodeEntities(token.href)}>{inline(token.tokens)}</Link>;
    case "image":
      return <Image address={decodeEntities(token.href)} text={decodeEntities(token.text)} />;
    case "escape":
      return token.text;
    case "text":
      return token.tokens ? inline(token.tokens) : decodeEntities(token.text);
    default:
      return token.raw;
  }
}

export function Link({ address, children }: { address: string; children: ReactNode }) {
  const target = linkTarget(address);
  if (target === undefined) return children;
  return (
    <a
      href={target}
      title={target}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="text-ink underline decoration-line-strong underline-offset-2 hover:decoration-ink"
    >
      {children}
    </a>
  );
}

function Image({ address, text }: { address: string; text: string }) {
  const source = imageSource(address);
  if (source !== undefined) return <img src={source} alt={text} className="max-h-96 max-w-full rounded-lg" />;
  return <Link address={address}>{text || "image"}</Link>;
}
