// The words of `slipway tasks`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "task";

export const TASKS = group({
  area: "chats",
  name: "tasks",
  help: "Give a model a task in a workspace of its own: make, list, read, talk to, pause, resume, delete.",
  details: () =>
    `TASK is a name or an id; somebody else's is OWNER/NAME. TEXT comes from a pipe where it is left out.\n${CONNECTION()}`,
  words: [
    {
      name: "list",
      usage: "[WORDS] [--all]",
      help: "Yours, or all that you may see; words search, such as status:active.",
      load: () => import("../client/tasks/list.ts"),
    },
    {
      name: "create",
      usage: "TEXT [--template NAME] [--preset NAME] [--parameter NAME=VALUE]... [--name NAME] [--model NAME]",
      help: "Makes a workspace; a chat begins there with TEXT as soon as it runs.",
      load: () => import("../client/tasks/create.ts"),
    },
    {
      name: "status",
      names,
      usage: "TASK",
      help: "What it is doing.",
      load: () => import("../client/tasks/status.ts"),
    },
    {
      name: "logs",
      names,
      usage: "TASK",
      help: "What was said in it; `slipway chat watch` follows its chat.",
      load: () => import("../client/tasks/logs.ts"),
    },
    {
      name: "send",
      names,
      usage: "TASK TEXT",
      help: "Goes on with it; TEXT waits while its model is busy.",
      load: () => import("../client/tasks/send.ts"),
    },
    {
      name: "pause",
      names,
      usage: "TASK [--no-wait]",
      help: "Stops its workspace.",
      load: async () => ({ run: (await import("../client/tasks/pause.ts")).pause }),
    },
    {
      name: "resume",
      names,
      usage: "TASK [--no-wait]",
      help: "Starts its workspace again.",
      load: async () => ({ run: (await import("../client/tasks/pause.ts")).resume }),
    },
    {
      name: "delete",
      names,
      usage: "TASK [--yes]",
      help: "Deletes it with its workspace, once you have said so again; its chat is archived.",
      load: () => import("../client/tasks/delete.ts"),
    },
  ],
});
