// `GET /chats/{chat}/stream/git`: the git repositories a chat works on, as reported by its workspace's daemon (facts/chats 2.11, rules GS-1
// to GS-6). The caller must have access to the chat and its workspace.

import { Value } from "@sinclair/typebox/value";
import { parseJson, tryParseJson } from "#base/json/read.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { findVisibleChat } from "#domain/chats/find.ts";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import { GitMessage, type GitRepository, GitRequest } from "#schema/agents/git-message.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { toWireProblem, type WebSocketFrames, type WebSocketMessage, WireError } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { dialAgentSocket } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { Relay } from "../http/relay.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import type { Socket, SocketHandler } from "../http/socket.ts";
import { agentQuery, findAgentOfChat, upgradeToStream } from "./agent-socket.ts";
import { chatPath, tags } from "./paths.ts";

/** Slightly larger than the daemon's largest message. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

export const chatGit = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:chat/stream/git",
      async ({ caller, params, query, request }) => {
        const chat = await findVisibleChat(ctx, params.chat, caller);
        const { agent_id } = await findAgentOfChat(ctx, chat, caller, query.agent);
        const path = `/api/v0/git/watch?chat=${chat.id}`;
        const frames = await dialAgentSocket(ctx, agent_id, path, MAX_MESSAGE_BYTES, caller.user_id);
        const stream = new GitStream(ctx, chat, frames);
        return upgradeToStream(ctx, request, caller, chat, stream);
      },
      {
        user: true,
        params: chatPath,
        query: agentQuery,
        response: {
          200: Upgraded,
          ...fails(400, 401, 403, 404, 408, 500, 503),
        },
        detail: operation({
          tags,
          operationId: "streamChatGit",
          summary: "Stream the repositories of a chat",
          description:
            'A WebSocket of JSON text messages: `{"type": "changes", "scanned_at", "repositories"}` with the repositories that changed since the last message (the first has all of them), and `{"type": "error", "message"}`. Repositories are scanned after tool calls of the chat, every 30 s, and when the client sends `{"type": "refresh"}`, at most once a second. A refresh always gets a response. Returns 400 if the workspace can\'t be reached. Closes with 1011 when its agent disconnects.',
          sends: GitMessage,
          takes: GitRequest,
          access: "owner",
          scope: "chat:read",
          placement: "chat_workspace",
        }),
      },
    );

class GitStream implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #chat: ChatAccessRow;
  readonly #relay: Relay;
  readonly #frames: WebSocketFrames;
  #isRefreshing = false;

  constructor(ctx: ApiContext, chat: ChatAccessRow, frames: WebSocketFrames) {
    this.#ctx = ctx;
    this.#chat = chat;
    this.#frames = frames;
    this.#relay = new Relay(ctx.clock, frames);
  }

  open(socket: Socket): void {
    this.#relay.run(socket, async (message) => {
      const gitMessage = parseAgentMessage(message);
      return gitMessage && JSON.stringify(await this.#mask(gitMessage));
    });
  }

  /** Hides the same secrets that are hidden in results of the chat's tools. */
  async #mask({ repositories, ...message }: GitMessage): Promise<GitMessage> {
    const { id: chat_id, owner_id, workspace_id } = this.#chat;
    const mask = new SecretMask(await loadKnownSecrets(this.#ctx, { chat_id, owner_id, workspace_id }));
    const maskedRepositories: GitRepository[] = [];
    for (const { unified_diff, ...repository } of repositories ?? [])
      maskedRepositories.push({ ...mask.result(repository), unified_diff: await mask.longLines(unified_diff) });
    return { ...mask.result(message), ...(repositories ? { repositories: maskedRepositories } : {}) };
  }

  message(socket: Socket, data: string | Uint8Array): void {
    if (parseKind(data) !== "refresh") {
      socket.send(JSON.stringify({ type: "error", message: "unknown message type" } satisfies GitMessage));
      return;
    }
    // A refresh is already pending.
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    const onSent = (): void => {
      this.#isRefreshing = false;
    };
    // The relay, which reads from the daemon, reports that the daemon has disconnected.
    this.#frames.send({ kind: "text", text: JSON.stringify({ type: "refresh" }) }).then(onSent, onSent);
  }

  drain(): void {
    this.#relay.drain();
  }

  close(): void {
    this.#relay.close();
  }
}

const parseKind = (data: string | Uint8Array): unknown =>
  (tryParseJson(data) as { type?: unknown } | null | undefined)?.type;

/** A daemon's messages are untrusted and are validated before they are relayed. */
const parseAgentMessage = (message: WebSocketMessage): GitMessage | undefined => {
  if (message.kind !== "text") return undefined;
  let output: unknown;
  try {
    output = Value.Clean(GitMessage, parseJson(message.text));
  } catch (error) {
    throw toWireProblem("The agent's message", error);
  }
  if (!Value.Check(GitMessage, output)) throw new WireError("protocol", "The agent's message is not a git status.");
  return output;
};
