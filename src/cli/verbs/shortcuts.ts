// Subcommands of `slipway workspaces` that are also top-level verbs because they are common: the same code, under the names that users try
// first.
import type { SubVerb, Verb } from "../verb.ts";
import { CONNECTION } from "./client.ts";
import { WORKSPACES } from "./workspaces.ts";

const getSubVerb = (name: string): SubVerb => {
  const subcommand = WORKSPACES.subcommands?.find((one) => one.name === name);
  if (!subcommand) throw new Error(`slipway workspaces has no subcommand ${name}`);
  return subcommand;
};

/** `help` is in the imperative, like all commands in the list; subcommands are described in the third person. */
const createShortcut = (name: string, help: string, subcommand = name): Verb => {
  const { usage, completes, load } = getSubVerb(subcommand);
  return { name, area: "workspaces", help, usage, details: CONNECTION, ...(completes ? { completes } : {}), load };
};

/** Lists running workspaces: `slipway ls status:running`. */
const RUNNING: Verb = {
  ...createShortcut("ps", "List your running workspaces.", "list"),
  load: async () => {
    const { run } = await getSubVerb("list").load();
    return { run: (input) => run({ ...input, argv: ["status:running", ...input.argv] }) };
  },
};

export const SHORTCUTS: readonly Verb[] = [
  createShortcut(
    "ls",
    "List your workspaces, or all that you can see. Filter with terms such as status:running.",
    "list",
  ),
  RUNNING,
  createShortcut(
    "create",
    "Create a workspace and wait until its agent is ready; --repo opens a Git repository in it.",
  ),
  createShortcut(
    "start",
    "Start a workspace and wait until its agent is ready; --update takes the template's active version.",
  ),
  createShortcut("stop", "Stop a workspace."),
  createShortcut("restart", "Stop a workspace and start it again."),
  createShortcut("update", "Update a workspace to its template's active version, and restart it if it is running."),
  createShortcut(
    "fork",
    "Create workspaces with copies of this one's files and of your chats in it; --start starts them.",
  ),
  createShortcut(
    "rm",
    "Delete a workspace after confirmation; --permanent skips the trash, --orphan leaves resources behind that cannot be removed.",
    "delete",
  ),
];
