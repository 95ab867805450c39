// `slipway workspaces show WORKSPACE`: one workspace with its agents and apps.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { appLink, listAgents, type Shown, workspaceAsked } from "./find.ts";
import { formatStatus } from "./list.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const named = workspaceAsked(input, words);
  return withServer("workspaces show", input, value, async ({ client }) => {
    const workspace = await named(client);
    if (has.json) input.print(JSON.stringify(workspace));
    else {
      const { host } = await client.get("/api/v2/applications/host");
      input.print(described(workspace, { server: client.url, host }, input.clock.now()));
    }
    return EXIT.ok;
  });
};

const described = (workspace: Workspace, shown: Shown, now: number): string => {
  const { latest_build: build, owner_name, name } = workspace;
  const version = `${workspace.template_name}, version ${build.template_version_name}`;
  const rows: [string, string | undefined][] = [
    ["Workspace", `${owner_name}/${name}`],
    ["Template", workspace.outdated ? `${version} (outdated: start it with --update)` : version],
    ["Status", `${formatStatus(workspace)} (build ${build.build_number}, ${build.reason})`],
    ["Problem", build.job.error],
    ["Stops", build.deadline && relative(build.deadline, now)],
    ["Starts", workspace.next_start_at && relative(workspace.next_start_at, now)],
    ["Schedule", workspace.autostart_schedule],
    ["Last used", relative(workspace.last_used_at, now)],
  ];
  const lines = rows.flatMap(([head, text]) => (text ? [`${head.padEnd(10)}  ${plain(text)}`] : []));
  for (const agent of listAgents(workspace)) {
    lines.push("", `Agent ${plain(agent.name)}  ${agent.status}, ${agent.lifecycle_state}`);
    for (const app of agent.apps) {
      lines.push(`  ${plain(app.display_name || app.slug)}  ${plain(appLink(workspace, agent, app, shown))}`);
    }
  }
  return lines.join("\n");
};
