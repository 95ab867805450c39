// The subcommands of `slipway chat`.
import type { PermissionMode } from "#schema/chats/chat-permissions.ts";
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "chat";

/** Imports only the type of the schema's list, because its module would be loaded at every start of the program. */
const MODES: Readonly<Record<PermissionMode, string>> = {
  ask: "`ask` before changes",
  accept_edits: "`accept_edits`",
  allow: "`allow` everything",
  plan: "`plan` only",
};
const MODE_NAMES = Object.keys(MODES).join("|");
const PERMISSIONS = "[--permissions ask|allow|deny]";

export const CHAT = group({
  area: "chats",
  name: "chat",
  help: "Chat with a model, with or without a workspace.",
  details: () =>
    [
      "CHAT is an ID or a unique prefix of one. Without TEXT, the message is read from standard input.",
      "--mode  permission mode, applied when no rule matches:",
      `        ${Object.values(MODES).join(", ")}`,
      "--permissions  how to answer permission requests: interactively (the default on a terminal), or all the same way;",
      "               without a terminal or with --json, requests are only printed",
      "Ctrl-C interrupts the turn in `new` and `send`. In `watch` it only stops watching.",
      CONNECTION(),
    ].join("\n"),
  subcommands: [
    { name: "list", usage: "", help: "Lists your chats.", load: () => import("../client/chat/list.ts") },
    {
      name: "new",
      usage: `TEXT [--workspace NAME [--agent NAME]] [--model NAME] [--mode ${MODE_NAMES}] ${PERMISSIONS} [--no-wait]`,
      help: "Starts a chat with a model or a coding agent and prints the answer as it arrives.",
      load: () => import("../client/chat/new.ts"),
    },
    {
      name: "send",
      completes,
      usage: `CHAT TEXT [--interrupt] [--model NAME] ${PERMISSIONS} [--no-wait]`,
      help: "Sends a message; --interrupt stops the current turn instead of queueing.",
      load: () => import("../client/chat/send.ts"),
    },
    {
      name: "mode",
      completes,
      usage: `CHAT [${MODE_NAMES}]`,
      help: "Shows or sets the permission mode, even during a turn.",
      load: () => import("../client/chat/mode.ts"),
    },
    {
      name: "compact",
      completes,
      usage: "CHAT [TEXT] [--no-wait]",
      help: "Summarizes the history, following the instructions in TEXT, and continues from the summary. Same as `send CHAT /compact TEXT`.",
      load: () => import("../client/chat/compact.ts"),
    },
    {
      name: "clear",
      completes,
      usage: "CHAT",
      help: "Clears the model's context. You still see the messages. Same as `send CHAT /clear`.",
      load: () => import("../client/chat/clear.ts"),
    },
    {
      name: "try",
      completes,
      usage: "CHAT TEXT [--ways N] [--model NAME]... [--check COMMAND] [--check-timeout DURATION] [--no-wait]",
      help: "Tries a prompt in several ways, each in its own fork of the chat's workspace, and waits until all are done.",
      load: () => import("../client/chat/try.ts"),
    },
    {
      name: "ways",
      completes,
      usage: "CHAT [--diff WAY] [--stop]",
      help: "Shows the ways that a chat is trying; --diff prints the changes of one, --stop stops all.",
      load: () => import("../client/chat/ways.ts"),
    },
    {
      name: "keep",
      completes,
      usage: "CHAT WAY|none [--yes] [--no-wait]",
      help: "Keeps one way after confirmation: its files replace those of the workspace, and all forks are moved to the trash. `none` discards all ways.",
      load: () => import("../client/chat/keep.ts"),
    },
    {
      name: "watch",
      completes,
      usage: `CHAT [--until-idle] ${PERMISSIONS}`,
      help: "Prints the chat and follows it; --until-idle exits when the turn ends.",
      load: () => import("../client/chat/watch.ts"),
    },
  ],
});
