// What a model is asked with, in the protocol of OpenAI.
import type { ModelCall } from "#test/support/models/model-server.ts";

export const messagesIn = ({ body }: ModelCall) => body.messages as { role: string; content: string }[];
export const rolesIn = (call: ModelCall): string =>
  messagesIn(call)
    .map(({ role }) => role)
    .join(" ");
/** All of it, to look for words in. */
export const told = (call: ModelCall): string => JSON.stringify(call.body);
/** Whether it is to sum a history up. */
export const isSummary = (call: ModelCall): boolean => told(call).includes("You write the notes");
