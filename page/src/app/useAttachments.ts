/** Files that wait to be sent: from the button, the clipboard, or dropped onto the page. */
import { type DragEvent, useCallback, useState } from "react";
import { MAX_FILE_BYTES } from "./files.ts";

export function useAttachments() {
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState<string>();
  const [isOver, setOver] = useState(false);

  const attach = useCallback((added: File[]) => {
    const tooLarge = added.filter(({ size }) => size > MAX_FILE_BYTES);
    setProblem(tooLarge.length > 0 ? `${tooLarge[0]!.name} is larger than 20 MiB.` : undefined);
    setFiles((attached) => [...attached, ...added.filter(({ size }) => size <= MAX_FILE_BYTES)]);
  }, []);
  const remove = useCallback((file: File) => setFiles((attached) => attached.filter((other) => other !== file)), []);
  const clear = useCallback(() => {
    setFiles([]);
    setProblem(undefined);
  }, []);

  const target = {
    onDragOver(event: DragEvent) {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave(event: DragEvent<HTMLElement>) {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop(event: DragEvent) {
      setOver(false);
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      attach([...event.dataTransfer.files]);
    },
  };
  return { files, problem, isOver, attach, remove, clear, target };
}
