/** Saves a text on the person's machine. */
export function saveFile(name: string, mediaType: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** For names of files: "2026-01-31T12-00-00". */
export function timeForName(): string {
  return new Date().toISOString().slice(0, 19).replaceAll(":", "-");
}
