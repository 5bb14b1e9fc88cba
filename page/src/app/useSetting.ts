/** A choice that survives a reload, where the browser allows storage. */
import { useCallback, useState } from "react";

export function useSetting<T extends string>(
  key: string,
  choices: readonly [T, ...T[]],
  storage: () => Storage = () => localStorage,
): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      const kept = storage().getItem(key);
      return choices.find((choice) => choice === kept) ?? choices[0];
    } catch {
      return choices[0];
    }
  });
  const choose = useCallback(
    (chosen: T) => {
      setValue(chosen);
      try {
        storage().setItem(key, chosen);
      } catch {
        // It holds until the page is left.
      }
    },
    [key, storage],
  );
  return [value, choose];
}
