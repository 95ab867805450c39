// Lets a chat work in a workspace, with the API.
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { until } from "#test/support/until.ts";
import type { Stage } from "./stage.ts";

/** Sends the text to a new chat. Returns the chat's final status and all its text. */
export const askChat = async (
  { admin, organization_id }: Stage,
  workspace_id: string,
  text: string,
): Promise<string> => {
  const request = { organization_id, workspace_id, content: [{ type: "text", text }] };
  const { id } = await admin.post<Chat>("/api/v2/chats", request);
  const { status } = await until(
    async () => {
      const chat = await admin.get<Chat>(`/api/v2/chats/${id}`);
      return chat.status === "waiting" || chat.status === "error" || chat.status === "requires_action"
        ? chat
        : undefined;
    },
    { what: "the chat's answer" },
  );
  const { messages } = await admin.get<MessagePage>(`/api/v2/chats/${id}/messages`);
  return `${status}: ${messages.flatMap(({ content }) => content.map((part) => part.text ?? "")).join(" ")}`;
};
