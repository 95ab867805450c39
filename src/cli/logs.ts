// `slipway logs WORKSPACE`: what the newest build and the workspace's agents wrote, one line at a time; with --follow as it comes.
import { loadClientConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import type { AgentLog } from "#schema/agent-log.ts";
import type { Workspace } from "#schema/workspace.ts";
import { ApiError, Client } from "#src/client.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "./verb.ts";

type BuildLog = { id: number; stage: string; output: string };

export const run: RunVerb = async (input) => {
  const [name, ...others] = input.argv;
  if (!name || name.startsWith("-")) throw usageError("logs", "name the workspace first: `slipway logs WORKSPACE`");
  const { given: follow, rest } = takeSwitch(others, "--follow");
  const { url, token } = loadClientConfig({ ...input, argv: rest });
  const client = new Client(url, token);
  try {
    const workspace = await client
      .get<Workspace>(`/api/v2/users/me/workspace/${encodeURIComponent(name)}`, { signal: input.signal })
      .catch((error) => {
        if (error instanceof ApiError || input.signal.aborted) throw error;
        throw new ApiError(0, { message: `${url} does not answer (${(error as Error).message}).` });
      });
    await (follow ? followLogs(input, client, workspace) : printLogs(input, client, workspace));
    return input.signal.aborted ? EXIT.interrupted : EXIT.ok;
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    if (!(error instanceof ApiError)) throw error;
    input.printError(`${error.message}\n`);
    return EXIT.failed;
  }
};

const agentsOf = (workspace: Workspace): { id: string; name: string }[] =>
  workspace.latest_build.resources.flatMap((resource) => resource.agents ?? []);

const printLogs = async (input: VerbInput, client: Client, workspace: Workspace): Promise<void> => {
  const build = await client.get<BuildLog[]>(`/api/v2/workspacebuilds/${workspace.latest_build.id}/logs`);
  for (const line of build) input.print(line.output);
  for (const agent of agentsOf(workspace)) {
    const lines = await client.get<AgentLog[]>(`/api/v2/workspaceagents/${agent.id}/logs`);
    for (const line of lines) input.print(line.output);
  }
};

const followLogs = async (input: VerbInput, client: Client, workspace: Workspace): Promise<void> => {
  const building = messages(input, client, `/api/v2/workspacebuilds/${workspace.latest_build.id}/logs?follow=true`);
  for await (const line of building) input.print((line as BuildLog).output);
  if (input.signal.aborted) return;
  const started = await client.get<Workspace>(`/api/v2/workspaces/${workspace.id}`);
  await Promise.all(agentsOf(started).map((agent) => followAgent(input, client, agent.id)));
};

const followAgent = async (input: VerbInput, client: Client, agent: string): Promise<void> => {
  for await (const lines of messages(input, client, `/api/v2/workspaceagents/${agent}/logs?follow=true&after=0`)) {
    for (const line of lines as AgentLog[]) input.print(line.output);
  }
};

/** The messages of a WebSocket as values, until the server ends it or the program is told to stop. */
async function* messages({ signal }: VerbInput, client: Client, path: string): AsyncGenerator<unknown> {
  using socket = await client.socket(path);
  const end = (): void => socket.close();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  for await (const message of socket) yield JSON.parse(String(message));
  signal.removeEventListener("abort", end);
}
