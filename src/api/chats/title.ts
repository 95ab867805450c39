// Asking for a title of what was said so far. Nothing is stored: the owner takes the proposal by changing the chat, or leaves it.
import { t } from "elysia";
import { AppError, notFound } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import { ownChat } from "#domain/chats/find.ts";
import { toChatError } from "#src/llm/failure.ts";
import { ModelError } from "#src/llm/model.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

export const chatTitle = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:chat/title/propose",
      async ({ caller, params, request }) => {
        const { id } = await ownChat(ctx, params.chat, caller);
        const chat = await ctx.store.get(findChat({ id }));
        if (!chat) throw notFound();
        const title = await ctx.titles.propose(chat, request.signal).catch((error) => failed(error, ctx.clock.now()));
        return { title };
      },
      {
        user: true,
        params: chatPath,
        response: { 200: t.Object({ title: t.String() }), ...fails(400, 401, 403, 404, 409, 503, 504) },
        detail: operation({
          tags,
          operationId: "proposeChatTitle",
          summary: "Propose a title",
          description:
            "Asks the chat's model; without one that can be asked, the first words. The title is not stored.",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    );

/** In the provider's own words nothing is told. */
const failed = (error: unknown, now: number): never => {
  if (!(error instanceof ModelError)) throw error;
  const { message, detail } = toChatError(error, error, now);
  const kind =
    error.kind === "usage_limit"
      ? "conflict"
      : error.kind === "timeout"
        ? "gateway_timeout"
        : error.retryable
          ? "overloaded"
          : "invalid";
  throw new AppError(kind, message, { ...(detail ? { detail } : {}), cause: error });
};
