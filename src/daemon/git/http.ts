// The daemon's HTTP API for git (facts/wire 4.1): a WebSocket that follows the repositories of a chat, and a list of the branches that are
// checked out in them. Also parses which chats a request is for. Used by http.ts.
import type { Server } from "bun";
import { invalidField } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { CHAT_HEADER } from "#schema/agents/git-message.ts";
import type { SocketData, SocketHandler } from "../http/sockets.ts";
import type { GitWatches } from "./watch.ts";

export const createGitRoutes = (git: GitWatches) => ({
  "/api/v0/git/watch": {
    GET: (request: Request, server: Server<SocketData>) => {
      const handler = createFollower(git, parseChat(request));
      return server.upgrade(request, { data: { handler } })
        ? undefined
        : Response.json({ message: "This route takes WebSockets." }, { status: 426 });
    },
  },
  "/api/v0/git/references": {
    GET: async (request: Request) => Response.json(await git.listReferences(parseChat(request))),
  },
});

/** Returns the chats that a request is for; none if it does not come from a chat. */
export const parseChats = (request: Request): string[] =>
  (request.headers.get(CHAT_HEADER) ?? "").split(",").slice(0, 2).filter(isUuid);

const parseChat = (request: Request): string => {
  const chat = new URL(request.url).searchParams.get("chat") ?? "";
  if (!isUuid(chat)) throw invalidField("chat", "must be a UUID");
  return chat;
};

const createFollower = (git: GitWatches, chat: string): SocketHandler => {
  let stop: () => void = () => {};
  let sendUpdate: () => void = () => {};
  let refresh: () => void = () => {};
  return {
    open(socket) {
      const send = (message: unknown): boolean => {
        if (socket.getBufferedAmount() > 0) return false;
        socket.send(JSON.stringify(message));
        return true;
      };
      ({ stop, flush: sendUpdate, refresh } = git.watch(chat, { send }));
    },
    message(socket, data) {
      if (parseType(data) === "refresh") refresh();
      else socket.send(JSON.stringify({ type: "error", message: "unknown message type" }));
    },
    drain: () => sendUpdate(),
    close: () => stop(),
  };
};

const parseType = (data: string | Uint8Array): unknown => {
  try {
    return (JSON.parse(String(data)) as { type?: unknown } | null)?.type;
  } catch {
    return undefined;
  }
};
