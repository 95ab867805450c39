// `slipway workspaces show WORKSPACE`: one workspace with its agents and apps.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { readArguments } from "../../arguments.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { type AppServer, listAgents, selectWorkspace, toAppUrl } from "./find.ts";
import { formatStatus } from "./list.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("workspaces show", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    if (has.json) input.print(JSON.stringify(workspace));
    else {
      const { host } = await client.get("/api/v2/applications/host");
      input.print(describeWorkspace(workspace, { server: client.url, host }, input.clock.now()));
    }
  });
};

const describeWorkspace = (workspace: Workspace, appServer: AppServer, now: number): string => {
  const { latest_build: build, owner_name, name } = workspace;
  const version = `${workspace.template_name}, version ${build.template_version_name}`;
  const rows: [string, string | undefined][] = [
    ["Workspace", `${owner_name}/${name}`],
    ["Template", workspace.outdated ? `${version} (outdated: start it with --update)` : version],
    ["Status", `${formatStatus(workspace)} (build ${build.build_number}, ${build.reason})`],
    ["Problem", build.job.error],
    ["Stops", build.deadline && formatRelative(build.deadline, now)],
    ["Starts", workspace.next_start_at && formatRelative(workspace.next_start_at, now)],
    ["Schedule", workspace.autostart_schedule],
    ["Last used", formatRelative(workspace.last_used_at, now)],
  ];
  const lines = rows.flatMap(([head, text]) => (text ? [`${head.padEnd(10)}  ${toPlainLine(text)}`] : []));
  for (const agent of listAgents(workspace)) {
    lines.push("", `Agent ${toPlainLine(agent.name)}  ${agent.status}, ${agent.lifecycle_state}`);
    for (const app of agent.apps) {
      lines.push(
        `  ${toPlainLine(app.display_name || app.slug)}  ${toPlainLine(toAppUrl(workspace, agent, app, appServer))}`,
      );
    }
  }
  return lines.join("\n");
};
