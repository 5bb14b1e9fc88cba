/** What the agent may ask this page to do, and how it is answered. */
import { claimCall, type PendingCall } from "adk-stream-client";

const tools: Record<string, (input: any) => unknown> = {
  change_bgm: ({ track }: { track: number }) => {
    document.title = `Track ${track}`; // the music is left to you
    return { success: true, track, message: `Track ${track} is on.` };
  },
  get_location: () =>
    new Promise((resolve, reject) =>
      navigator.geolocation.getCurrentPosition(
        ({ coords: { latitude, longitude, accuracy }, timestamp }) =>
          resolve({ latitude, longitude, accuracy, timestamp }),
        ({ message }) => reject(new Error(message)),
      ),
    ),
};

/** Returns nothing for tools that are not this page's, such as those of the server. */
export async function runTool({ toolName, input }: PendingCall): Promise<unknown> {
  return Object.hasOwn(tools, toolName) ? tools[toolName]!(input) : undefined;
}

/** For `onToolCall`. Not to be awaited there: the stream would wait for the answer, and the answer for the stream. */
export async function answerCall(chatId: string, call: PendingCall, addToolOutput: (answer: any) => unknown) {
  const { toolName: tool, toolCallId } = call;
  if (!Object.hasOwn(tools, tool) || !claimCall(chatId, toolCallId)) return; // told again is not run again
  const answer = await runTool(call).then(
    (output) => ({ output }),
    (error: Error) => ({ state: "output-error", errorText: error.message }),
  );
  await addToolOutput({ tool, toolCallId, ...answer });
}
