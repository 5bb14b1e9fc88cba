export { answersAreComplete } from "./answers.ts";
export { type BindableChat, bindChat } from "./bind-chat.ts";
export type { WebSocketConstructor, WebSocketLike } from "./connection.ts";
export type { LiveEvent, LiveListener } from "./frames.ts";
export type {
  AdkCard,
  AdkChainLink,
  AdkDataParts,
  AdkMetadata,
  AdkProviderMetadata,
  AdkTools,
  AdkUIMessage,
} from "./messages.ts";
export type { LiveChatTransportOptions, Timing } from "./options.ts";
export {
  type AnswerableChat,
  type CallHandler,
  claimCall,
  type PendingCall,
  runPendingCalls,
} from "./pending-calls.ts";
export { ChatRefusedError } from "./request.ts";
export { LiveChatTransport, type VoiceOptions } from "./transport.ts";
