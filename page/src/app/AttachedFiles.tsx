/** What will be sent along, with pictures as pictures. */
import { FileText, X } from "lucide-react";
import { useEffect, useState } from "react";

export function AttachedFiles({ files, onRemove }: { files: File[]; onRemove(file: File): void }) {
  if (files.length === 0) return null;
  return (
    <ul aria-label="Attached files" className="flex flex-wrap gap-2 px-3 pt-3">
      {files.map((file, place) => (
        <li
          key={`${file.name} ${place}`}
          className="flex max-w-52 items-center gap-2 rounded-lg border border-line bg-paper p-1"
        >
          <Preview file={file} />
          <span className="min-w-0 truncate text-sm">{file.name}</span>
          <button
            type="button"
            aria-label={`Remove ${file.name}`}
            className="shrink-0 rounded p-1 text-ink-2 hover:text-ink"
            onClick={() => onRemove(file)}
          >
            <X size={14} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}

function Preview({ file }: { file: File }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    if (!file.type.startsWith("image/")) return;
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  if (address === undefined) return <FileText size={18} className="m-2 shrink-0 text-ink-2" aria-hidden />;
  return <img src={address} alt="" className="size-9 shrink-0 rounded object-cover" />;
}
