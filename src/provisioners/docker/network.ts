// The networks that workspaces are in. Containers of one workspace may talk to each other, those of different workspaces may not: a
// workspace of one container joins a network in which the engine keeps containers apart; one of several has a network of its own,
// where each is found by its resource's name. Both reach the internet and this machine.
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { type Engine, EngineError } from "./engine.ts";
import { networkProblem } from "./network-name.ts";

/** The network that workspaces of one container share without seeing each other. */
export const APART = "slipway";

/** The name of a network of the engine, for containers whose template names none; `count` is how many the workspace has. */
export const networkFor = ({ workspace }: ProvisionRequest, count: number): string =>
  count > 1 ? `${APART}-${workspace.id}` : APART;

/** A network that a template names. Throws ProvisionError for one that a workspace cannot be in. */
export const checkNetwork = (network: string): string => {
  const problem = networkProblem(network);
  if (problem !== undefined) throw new ProvisionError(problem);
  return network;
};

/** Makes the network unless it is there. */
export const provideNetwork = async (
  engine: Engine,
  name: string,
  labels: Record<string, string>,
  signal: AbortSignal,
): Promise<void> => {
  const isShared = name === APART;
  const body = {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    Labels: isShared ? { "slipway.network": "apart" } : labels,
    Options: isShared ? { "com.docker.network.bridge.enable_icc": "false" } : {},
  };
  try {
    const found = await engine.json<{ Options?: Record<string, string> | null }>(
      "look for the network",
      "GET",
      `/networks/${name}`,
      { signal, fine: [404] },
    );
    if (found) return;
    await engine.json("create the network", "POST", "/networks/create", { body, signal });
  } catch (error) {
    // Another build has made it in the same moment.
    if (error instanceof EngineError && error.status === 409) return;
    throw error;
  }
};

/** Removes the networks that are a workspace's own; `filters` says whose, as the engine has it. */
export const removeNetworks = async (engine: Engine, filters: string, signal: AbortSignal): Promise<void> => {
  const found = await engine.json<{ Id: string }[]>("list networks", "GET", "/networks", {
    query: { filters },
    signal,
  });
  for (const { Id } of found ?? []) {
    await engine.json("remove a network", "DELETE", `/networks/${Id}`, { signal, fine: [404] });
  }
};
