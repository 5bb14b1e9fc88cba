/** What the browser lets this page do. */
export type Permission = "ask" | "allowed" | "denied";

const WORDS: Record<PermissionState, Permission> = { prompt: "ask", granted: "allowed", denied: "denied" };

/** A browser that does not tell its permissions asks the person. */
export async function permissionFor(name: PermissionName): Promise<Permission> {
  const status = await statusOf(name);
  return status === undefined ? "ask" : WORDS[status.state];
}

/** Calls back whenever it has changed. */
export function watchPermission(name: PermissionName, onChange: () => void): () => void {
  const controller = new AbortController();
  void statusOf(name).then((status) => status?.addEventListener("change", onChange, { signal: controller.signal }));
  return () => controller.abort();
}

async function statusOf(name: PermissionName): Promise<PermissionStatus | undefined> {
  try {
    return await navigator.permissions?.query({ name });
  } catch {
    return undefined;
  }
}
