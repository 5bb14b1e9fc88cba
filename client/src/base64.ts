/** Base64 of bytes, without the stack overflow that `String.fromCharCode(...bytes)` meets in long ones. */

const BLOCK = 0x8000;

export function encodeBase64(bytes: ArrayBuffer): string {
  const view = new Uint8Array(bytes);
  let binary = "";
  for (let start = 0; start < view.length; start += BLOCK) {
    binary += String.fromCharCode(...view.subarray(start, start + BLOCK));
  }
  return btoa(binary);
}

export function decodeBase64(text: string): ArrayBuffer | undefined {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return undefined;
  }
  const view = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) view[index] = binary.charCodeAt(index);
  return view.buffer;
}
