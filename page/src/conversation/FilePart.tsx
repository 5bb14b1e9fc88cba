import { FileText } from "lucide-react";
import { Link } from "./Markdown.tsx";
import { fileOfThisServer, imageSource, linkTarget } from "./safe-urls.ts";

export interface FileLike {
  url: string;
  mediaType: string;
  filename?: string | undefined;
}

/** Images of this server and images inside of the message are shown. Everything else is a link. */
export function FilePart({ file }: { file: FileLike }) {
  const name = file.filename || nameOf(file);
  const image = file.mediaType.startsWith("image/") ? imageSource(file.url) : undefined;
  if (image !== undefined)
    return <img src={image} alt={name} className="max-h-96 max-w-full rounded-lg border border-line" />;
  const own = file.url.startsWith("data:") ? file.url : fileOfThisServer(file.url);
  return (
    <p className="inline-flex max-w-full items-center gap-2 rounded-lg border border-line bg-card px-3 py-2 text-sm text-ink">
      <FileText size={16} aria-hidden className="shrink-0 text-ink-2" />
      {own !== undefined ? (
        // Saved, never opened: a document that opens here would have the rights of this page.
        <a href={own} download={name} className="underline underline-offset-2">
          {name}
        </a>
      ) : linkTarget(file.url) !== undefined ? (
        <Link address={file.url}>{name}</Link>
      ) : (
        name
      )}
      <span className="text-ink-2">{file.mediaType}</span>
    </p>
  );
}

function nameOf({ url, mediaType }: FileLike): string {
  if (mediaType.startsWith("image/") && url.startsWith("data:")) return "Image";
  const last = url.startsWith("data:") ? undefined : URL.parse(url, document.baseURI)?.pathname.split("/").at(-1);
  return last ? safelyDecoded(last) : "File";
}

function safelyDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
