/** What the server tells the page in its HTML; empty if it tells nothing. */
export function told(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}
