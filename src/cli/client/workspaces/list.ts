// `slipway workspaces list [WORDS…] [--all]`: the caller's own workspaces, or all visible ones; the words filter the list like the API's
// search.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { loadAllWorkspaces } from "../pages.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["all"] });
  const q = [...(has.all ? [] : ["owner:me"]), ...words].join(" ");
  return withServer("workspaces list", input, value, async ({ client }) => {
    const workspaces = await loadAllWorkspaces(client, q);
    if (has.json) input.print(JSON.stringify(workspaces));
    else if (workspaces.length === 0) input.print("No workspaces. Create one with `slipway workspaces create NAME`.");
    else input.print(formatWorkspaces(workspaces, has.all, input.clock.now()));
  });
};

const formatWorkspaces = (workspaces: readonly Workspace[], showsOwners: boolean, now: number): string =>
  formatTable(
    ["WORKSPACE", "TEMPLATE", "STATUS", "LAST USED"],
    workspaces.map((one) => [
      showsOwners ? `${toPlainLine(one.owner_name)}/${one.name}` : one.name,
      `${toPlainLine(one.template_name)}${one.outdated ? " (outdated)" : ""}`,
      formatStatus(one),
      formatRelative(one.last_used_at, now),
    ]),
  );

/** Returns the build's status and other important conditions. */
export const formatStatus = ({ latest_build, health, dormant_at }: Workspace): string => {
  const conditions = [...(dormant_at ? ["dormant"] : []), ...(health.healthy ? [] : ["unhealthy"])];
  return [latest_build.status, ...conditions].join(", ");
};
