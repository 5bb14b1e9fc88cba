/** The hue of each family. Written out, so that Tailwind finds the classes. */
import type { Family } from "./log.ts";

export const FAMILY_COLOUR: Record<Family, string> = {
  text: "bg-text",
  reasoning: "bg-reasoning",
  tool: "bg-tool",
  approval: "bg-approval",
  audio: "bg-audio",
  data: "bg-ok",
  error: "bg-error",
  frame: "bg-line-strong",
};

export const FAMILY_NAME: Record<Family, string> = {
  text: "Text",
  reasoning: "Reasoning",
  tool: "Tools",
  approval: "Approval",
  audio: "Audio",
  data: "Data",
  error: "Errors",
  frame: "Frames",
};
