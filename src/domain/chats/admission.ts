// Checks a person's message before it is stored: spend limit and hooks.
import type { CheckedCommand } from "#actors/chat/hooks/hook-commands.ts";
import { type AdmittedPrompt, admitPrompt } from "#actors/chat/hooks/prompts.ts";
import { notFound } from "#base/errors.ts";
import { type ChatAccessRow, findChat } from "#db/chats/chats.ts";
import type { RequestKey } from "#db/chats/requests.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { DomainContext } from "../context.ts";
import { isRepeated } from "./idempotency.ts";
import { checkUsageLimit } from "./usage-limits.ts";

type Submission = {
  readonly content: MessagePart[];
  readonly command: CheckedCommand;
  readonly request_key?: RequestKey | undefined;
};

/** Returns the content to store after hooks have seen it. A message that the chat would reject is rejected before any hook is called. */
export const admitUserPrompt = async (
  ctx: DomainContext,
  { id, key, owner_id }: ChatAccessRow,
  { content, command, request_key }: Submission,
): Promise<AdmittedPrompt> => {
  const unchanged = { content, custom_prompt: null };
  if (await isRepeated(ctx, key, request_key)) return unchanged;
  await checkUsageLimit(ctx, owner_id);
  if (ctx.hooks.isOff) return unchanged;
  await ctx.chats.ask(id, "check", command);
  const chat = await ctx.store.get(findChat({ id }));
  if (!chat) throw notFound();
  return admitPrompt(ctx, { chat, content });
};
