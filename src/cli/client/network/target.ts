// Finds and connects to the workspace of a network command.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { WireError } from "#src/wire/index.ts";
import { VerbFailure } from "../../failure.ts";
import type { VerbInput } from "../../verb.ts";
import type { Remote } from "../remote.ts";
import { connectAgent, type StartOptions } from "../workspaces/agent.ts";
import type { JoinOptions, NetworkSession } from "./join.ts";

export type ConnectedAgent = {
  readonly workspace: Workspace;
  readonly agent_id: string;
  readonly joined: NetworkSession;
};

/** Runs `work` with the named agent. Rejects with VerbFailure when access is revoked. */
export const withAgent = async (
  input: VerbInput,
  remote: Remote,
  name: string,
  work: (agent: ConnectedAgent) => Promise<number>,
  { mayStart, reason, ...options }: Pick<JoinOptions, "datagram"> & StartOptions = {},
): Promise<number> => {
  const lookup = connectAgent(input, remote, name, { mayStart, reason });
  lookup.catch(() => {});
  // The request is sent first: the peer is loaded, created and connected to the relay while the server looks up the workspace.
  const { join } = await import("./join.ts");
  const agentId = lookup.then((one) => one.agent_id);
  await using joined = join(remote.client, agentId, { ...options, clock: input.clock });
  const { workspace, agent_id } = await lookup;
  remote.onInterrupt(async () => await joined[Symbol.asyncDispose]());
  try {
    return await Promise.race([work({ workspace, agent_id, joined }), joined.refused]);
  } catch (error) {
    if (error instanceof WireError) throw new VerbFailure(formatError(error, workspace.name));
    throw error;
  }
};

const formatError = ({ failure, message }: WireError, name: string): string => {
  if (failure === "timeout") return `${name} is not responding over the network (its agent may be too old)`;
  return failure === "refused" ? `${name} rejected the connection: ${message}` : message;
};
