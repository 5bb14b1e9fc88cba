export { JitterBuffer } from "./jitter-buffer.ts";
export { decodePcm16, encodePcm16 } from "./pcm.ts";
export { Resampler } from "./resampler.ts";
export { VoiceSession, type VoiceSessionOptions, type VoiceTransport } from "./voice-session.ts";
