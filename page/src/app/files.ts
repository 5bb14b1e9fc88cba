/** Attached files, as the AI SDK wants them. */
import type { FileUIPart } from "ai";

/** The server takes no larger file. */
export const MAX_FILE_BYTES = 20 * 1024 * 1024;

export async function readFiles(files: File[]): Promise<FileUIPart[]> {
  return Promise.all(
    files.map(async (file) => ({
      type: "file" as const,
      mediaType: file.type || "application/octet-stream",
      filename: file.name,
      url: await readAsDataUrl(file),
    })),
  );
}

function readAsDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}
