// Helpers for model requests in OpenAI's protocol.
import type { ModelCall } from "#test/support/models/model-server.ts";

export const messagesIn = ({ body }: ModelCall) => body.messages as { role: string; content: string }[];
export const rolesIn = (call: ModelCall): string =>
  messagesIn(call)
    .map(({ role }) => role)
    .join(" ");
/** Returns the request as text, for searching. */
export const toRequestText = (call: ModelCall): string => JSON.stringify(call.body);
/** Returns true if the request is for a summary of the history. */
export const isSummary = (call: ModelCall): boolean => toRequestText(call).includes("You write the notes");
