// A person's words before they are stored: within the spend limit, and seen by hooks.
import type { CheckedCommand } from "#actors/chat/hooks/checked.ts";
import { type AdmittedPrompt, admitPrompt } from "#actors/chat/hooks/prompts.ts";
import { notFound } from "#base/errors.ts";
import { type ChatPlace, findChat } from "#db/chats/chats.ts";
import type { RequestKey } from "#db/chats/requests.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { DomainContext } from "../context.ts";
import { isRepeated } from "./repeat.ts";
import { checkUsageLimit } from "./usage-limits.ts";

type Submission = {
  readonly typed: MessagePart[];
  readonly asked: CheckedCommand;
  readonly request_key?: RequestKey | undefined;
};

/** What is to be stored of a person's words, once hooks have seen them; what would be refused anyway is refused before. */
export const admittedPrompt = async (
  ctx: DomainContext,
  { id, key, owner_id }: ChatPlace,
  { typed, asked, request_key }: Submission,
): Promise<AdmittedPrompt> => {
  const as_is = { content: typed, custom_prompt: null };
  if (await isRepeated(ctx, key, request_key)) return as_is;
  await checkUsageLimit(ctx, owner_id);
  if (ctx.hooks.isOff) return as_is;
  await ctx.chats.ask(id, "check", asked);
  const chat = await ctx.store.get(findChat({ id }));
  if (!chat) throw notFound();
  return admitPrompt(ctx, { chat, content: typed });
};
