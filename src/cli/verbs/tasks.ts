// The subcommands of `slipway tasks`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const completes = "task";

export const TASKS = group({
  area: "chats",
  name: "tasks",
  help: "Run an agent on a task in its own workspace.",
  details: () =>
    `TASK is a name or an ID; use OWNER/NAME for another user's task. Without TEXT, the message is read from standard input.\n${CONNECTION()}`,
  subcommands: [
    {
      name: "list",
      usage: "[FILTER] [--all]",
      help: "Lists your tasks, or all that you can see. Filter with terms such as status:active.",
      load: () => import("../client/tasks/list.ts"),
    },
    {
      name: "create",
      usage:
        "TEXT [--template NAME] [--repo URL] [--branch NAME] [--preset NAME] [--parameter NAME=VALUE]... [--name NAME] [--agent NAME | --model NAME]",
      help: "Creates a workspace and starts a chat with TEXT when it is running: with this coding agent or model, by default with the template's agent.",
      load: () => import("../client/tasks/create.ts"),
    },
    {
      name: "status",
      completes,
      usage: "TASK",
      help: "Shows the task's status.",
      load: () => import("../client/tasks/status.ts"),
    },
    {
      name: "logs",
      completes,
      usage: "TASK",
      help: "Prints the task's messages; `slipway chat watch` follows its chat.",
      load: () => import("../client/tasks/logs.ts"),
    },
    {
      name: "send",
      completes,
      usage: "TASK TEXT",
      help: "Sends a message; it is queued while the agent is working.",
      load: () => import("../client/tasks/send.ts"),
    },
    {
      name: "pause",
      completes,
      usage: "TASK [--no-wait]",
      help: "Stops the task's workspace.",
      load: async () => ({ run: (await import("../client/tasks/pause.ts")).pause }),
    },
    {
      name: "resume",
      completes,
      usage: "TASK [--no-wait]",
      help: "Starts the task's workspace again.",
      load: async () => ({ run: (await import("../client/tasks/pause.ts")).resume }),
    },
    {
      name: "delete",
      completes,
      usage: "TASK [--yes]",
      help: "Deletes the task and its workspace after confirmation; its chat is archived.",
      load: () => import("../client/tasks/delete.ts"),
    },
  ],
});
