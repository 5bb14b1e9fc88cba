declare module "react-test-renderer" {
  import type { ReactElement } from "react";
  export function create(element: ReactElement): { update(element: ReactElement): void; unmount(): void };
}
