import { Link } from "./Markdown.tsx";
import type { Part } from "./parts.ts";

export type SourcePart = Extract<Part, { type: "source-url" | "source-document" }>;

export function isSource(part: Part): part is SourcePart {
  return part.type === "source-url" || part.type === "source-document";
}

export function Sources({ sources }: { sources: SourcePart[] }) {
  return (
    <div className="text-sm">
      <h3 className="text-xs font-medium text-ink-2">Sources</h3>
      <ol className="flex flex-wrap gap-x-4 gap-y-1">
        {sources.map((source, index) => (
          <li key={index}>
            {source.type === "source-url" ? (
              <Link address={source.url}>{source.title || hostOf(source.url)}</Link>
            ) : (
              source.title || source.filename || "Document"
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}

function hostOf(address: string): string {
  return URL.parse(address)?.host || address;
}
