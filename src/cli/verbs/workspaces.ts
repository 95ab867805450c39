// The words of `slipway workspaces`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const names = "workspace";

export const WORKSPACES = group({
  name: "workspaces",
  help: "List, make, start, stop and delete workspaces, read their logs, open a terminal.",
  details: CONNECTION,
  words: [
    {
      name: "list",
      usage: "[WORDS] [--all]",
      help: "Yours, or all that you may see; words search, such as status:running.",
      load: () => import("../client/workspaces/list.ts"),
    },
    {
      ...{ name: "show", names },
      usage: "WORKSPACE",
      help: "One with its agents and apps; somebody else's is OWNER/NAME.",
      load: () => import("../client/workspaces/show.ts"),
    },
    {
      name: "create",
      usage:
        "NAME [--template NAME] [--parameter NAME=VALUE]... [--preset NAME] [--ttl 8h] [--schedule CRON] [--no-wait]",
      help: "Makes one and waits until it runs. CRON is such as 'CRON_TZ=Europe/Berlin 0 9 * * 1-5'.",
      load: () => import("../client/workspaces/create.ts"),
    },
    {
      ...{ name: "start", names },
      usage: "WORKSPACE [--update] [--parameter NAME=VALUE]... [--no-wait]",
      help: "Starts it; --update takes the template's active version.",
      load: () => import("../client/workspaces/start.ts"),
    },
    {
      ...{ name: "stop", names },
      usage: "WORKSPACE [--no-wait]",
      help: "Stops it.",
      load: () => import("../client/workspaces/stop.ts"),
    },
    {
      ...{ name: "delete", names },
      usage: "WORKSPACE [--yes] [--orphan] [--no-wait]",
      help: "Deletes it once you have said so again; --orphan forgets what cannot be removed.",
      load: () => import("../client/workspaces/delete.ts"),
    },
    {
      ...{ name: "logs", names },
      usage: "WORKSPACE [--follow]",
      help: "What its newest build and its agents wrote, and what they write with --follow.",
      load: () => import("../client/logs.ts"),
    },
    {
      ...{ name: "shell", names },
      usage: "WORKSPACE[.AGENT] [--container NAME] [--container-user NAME] [--reconnect ID] [-- COMMAND]",
      help: "A terminal, or a command whose exit code is passed on; `~.` leaves it running, --reconnect comes back to it.",
      load: () => import("../client/workspaces/shell.ts"),
    },
  ],
});
