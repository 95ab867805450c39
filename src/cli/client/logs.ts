// `slipway logs WORKSPACE`, also `slipway workspaces logs`: the logs of the newest build and of the workspace's agents, one line at a time;
// with --follow, live.

import { escapeHidden } from "#base/visible-text.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { readArguments } from "../arguments.ts";
import { toPlainLines } from "../text.ts";
import type { RunVerb } from "../verb.ts";
import { readMessages, withServer } from "./remote.ts";
import { listAgents, selectWorkspace } from "./workspaces/find.ts";

/** Prints a line; rejects once the reader is closed, as in `slipway logs dev --follow | head -1`. */
type Print = (line: unknown) => Promise<void>;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["follow"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("logs", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    const print: Print = async (line) => {
      const { output } = line as { output: string };
      const text = has.json ? escapeHidden(JSON.stringify(line)) : toPlainLines(output);
      if (input.streams) await input.streams.write(`${text}\n`);
      else input.print(text);
    };
    await (has.follow ? followLogs(client, workspace, print) : printLogs(client, workspace, print));
  });
};

const printLogs = async (client: Client, workspace: Workspace, print: Print): Promise<void> => {
  const buildLines = await client.get(`/api/v2/workspacebuilds/${workspace.latest_build.id}/logs`);
  for (const line of buildLines) await print(line);
  for (const { id } of listAgents(workspace)) {
    for (const line of await client.get(`/api/v2/workspaceagents/${id}/logs`)) await print(line);
  }
};

const followLogs = async (client: Client, workspace: Workspace, print: Print): Promise<void> => {
  const buildLines = readMessages<JobLog>(
    client,
    `/api/v2/workspacebuilds/${workspace.latest_build.id}/logs?follow=true`,
  );
  for await (const line of buildLines) await print(line);
  const current = await client.get(`/api/v2/workspaces/${workspace.id}`);
  await Promise.all(listAgents(current).map(({ id }) => followAgent(client, id, print)));
};

const followAgent = async (client: Client, agent: string, print: Print): Promise<void> => {
  const path = `/api/v2/workspaceagents/${agent}/logs?follow=true&after=0`;
  for await (const lines of readMessages<AgentLog[]>(client, path)) for (const line of lines) await print(line);
};
