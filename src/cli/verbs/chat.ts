// The words of `slipway chat`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "chat";

export const CHAT = group({
  area: "chats",
  name: "chat",
  help: "Talk to a model, in a workspace or without one.",
  details: () =>
    [
      "CHAT is an id or as much of its beginning as is unique. TEXT comes from a pipe where it is left out.",
      "--mode  what the chat may do without asking, where no rule says otherwise: `ask` before changes, `accept_edits`, `allow`",
      "        everything, or `plan` only",
      "--permissions  what calls are answered that wait for permission: by you on a terminal (the default), or all alike;",
      "               where nobody can be asked, or with --json, they are only told",
      "Ctrl-C in `new` and `send` interrupts the turn, in `watch` it only stops watching.",
      CONNECTION(),
    ].join("\n"),
  words: [
    { name: "list", usage: "", help: "Your chats.", load: () => import("../client/chat/list.ts") },
    {
      name: "new",
      usage:
        "TEXT [--workspace NAME] [--model NAME] [--mode ask|accept_edits|allow|plan] [--permissions ask|allow|deny] [--no-wait]",
      help: "A chat, and its answer as it comes.",
      load: () => import("../client/chat/new.ts"),
    },
    {
      name: "send",
      names,
      usage: "CHAT TEXT [--interrupt] [--model NAME] [--permissions ask|allow|deny] [--no-wait]",
      help: "Goes on with it; --interrupt instead of waiting for the turn that runs.",
      load: () => import("../client/chat/send.ts"),
    },
    {
      name: "mode",
      names,
      usage: "CHAT [ask|accept_edits|allow|plan]",
      help: "Shows its permission mode, or sets it, also while a turn runs.",
      load: () => import("../client/chat/mode.ts"),
    },
    {
      name: "compact",
      names,
      usage: "CHAT [TEXT] [--no-wait]",
      help: "A model sums up what was said, heeding TEXT, and the chat goes on from that; `send CHAT /compact TEXT`, too.",
      load: () => import("../client/chat/compact.ts"),
    },
    {
      name: "clear",
      names,
      usage: "CHAT",
      help: "The chat's model forgets what was said; you still see it. `send CHAT /clear`, too.",
      load: () => import("../client/chat/clear.ts"),
    },
    {
      name: "watch",
      names,
      usage: "CHAT [--until-idle] [--permissions ask|allow|deny]",
      help: "What is said, from the beginning and as it comes; --until-idle ends with the turn.",
      load: () => import("../client/chat/watch.ts"),
    },
  ],
});
