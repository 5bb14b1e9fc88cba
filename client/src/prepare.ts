/** What a request carries: the chat's own fields, those of the transport's options, and what the app prepares. */
import type { ChatTransport, UIMessage } from "ai";
import type { RequestFields } from "./frames.ts";
import { type LiveChatTransportOptions, mergeHeaders, type PreparedResume, resolve } from "./options.ts";
import type { RequestFrame } from "./request.ts";

export type SendOptions<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
/** Older releases hand over no signal here. */
export type ResumeOptions<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0] & {
  abortSignal?: AbortSignal;
};

export async function prepareSend<M extends UIMessage>(
  own: LiveChatTransportOptions<M>,
  options: SendOptions<M>,
): Promise<RequestFrame> {
  const { chatId: id, messages, trigger, messageId, metadata } = options;
  const { headers, body } = await mergedFields(own, options);
  const prepared = await own.prepareSendMessagesRequest?.({
    id,
    messages,
    requestMetadata: metadata,
    body,
    headers,
    trigger,
    messageId,
  });
  const fields = requestFields(own, prepared, { headers, body, metadata });
  return { type: "send", id, trigger, messageId, messages: prepared?.messages ?? messages, ...fields };
}

export async function prepareResume<M extends UIMessage>(
  own: LiveChatTransportOptions<M>,
  options: ResumeOptions<M>,
): Promise<RequestFrame> {
  const { chatId: id, metadata } = options;
  const { headers, body } = await mergedFields(own, options);
  const prepared = await own.prepareReconnectToStreamRequest?.({ id, requestMetadata: metadata, body, headers });
  const fields = requestFields(own, prepared, { headers, body, metadata });
  return { type: "resume", id, lastSequence: undefined, ...fields };
}

async function mergedFields<M extends UIMessage>(
  own: LiveChatTransportOptions<M>,
  { headers, body, abortSignal }: Pick<ResumeOptions<M>, "headers" | "body" | "abortSignal">,
) {
  abortSignal?.throwIfAborted();
  const [ownHeaders, ownBody] = await Promise.all([resolve(own.headers), resolve(own.body)]);
  return { headers: mergeHeaders(ownHeaders, headers), body: { ...ownBody, ...body } };
}

/** What the app has prepared takes the place of what was merged. */
function requestFields<M extends UIMessage>(
  { sdkVersion }: LiveChatTransportOptions<M>,
  prepared: PreparedResume | undefined,
  { headers, body, metadata }: Omit<RequestFields, "id">,
): Omit<RequestFields, "id"> {
  return {
    headers: prepared?.headers === undefined ? headers : mergeHeaders(prepared.headers),
    body: { ...(sdkVersion === undefined ? {} : { sdkVersion }), ...(prepared?.body ?? body) },
    metadata,
  };
}
