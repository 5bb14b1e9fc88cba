/** Addresses come from models and tools. Here is decided which of them the page may link to or load. */

const LINKED = new Set(["http:", "https:", "mailto:"]);
const IMAGE_DATA = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;

/** Only whole addresses: a relative one would lead to the page's own server. */
export function linkTarget(address: string): string | undefined {
  const url = URL.parse(address);
  return url !== null && LINKED.has(url.protocol) ? url.href : undefined;
}

/** For a web page that the user is to open: no mail address. */
export function webTarget(address: unknown): string | undefined {
  const target = typeof address === "string" ? linkTarget(address) : undefined;
  return target?.startsWith("mailto:") ? undefined : target;
}

/** An image of another server is never loaded: its address could carry words of the conversation to that server. */
export function imageSource(address: string): string | undefined {
  if (IMAGE_DATA.test(address)) return address;
  return fileOfThisServer(address);
}

/** An artifact of the chat, or what the user has just picked. */
export function fileOfThisServer(address: string): string | undefined {
  const url = URL.parse(address, document.baseURI);
  if (url === null || url.origin !== new URL(document.baseURI).origin) return undefined;
  return url.protocol === "blob:" || /\/files\/[^/]/.test(url.pathname) ? url.href : undefined;
}
