/** What the worklets and the page tell each other. The names are those under which the worklets register. */

export const MICROPHONE = "adk-stream-microphone";
export const PLAYER = "adk-stream-player";

/** The rate that the server takes voice at. */
export const VOICE_RATE = 16_000;

/** From the microphone's worklet, fifty times a second. */
export interface Captured {
  pcm: ArrayBuffer;
  level: number;
}

/** To the player's worklet. Without `pcm`: forget what has not been played. */
export type PlayerCommand = { pcm: ArrayBuffer; rate: number } | { pcm?: undefined };

/** From the player's worklet while it plays, and once when it has ended. */
export interface Played {
  level: number;
}
