// Creates and removes the networks of workspaces. Containers of the same workspace can communicate; containers of different workspaces
// cannot. A workspace with one container joins a network in which the engine isolates containers. A workspace with several containers has
// its own network, in which each container is reachable by its resource's name. Both networks reach the internet and this machine.
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { type Engine, EngineError } from "./engine.ts";
import { findNetworkProblem } from "./network-name.ts";

/** The network shared by single-container workspaces, which are isolated from each other. */
export const SHARED_NETWORK = "slipway";

/** Returns the network for the workspace's containers, if their template names none. */
export const chooseNetwork = ({ workspace }: ProvisionRequest, containerCount: number): string =>
  containerCount > 1 ? `${SHARED_NETWORK}-${workspace.id}` : SHARED_NETWORK;

/** Returns the network. Throws ProvisionError for a network that a workspace cannot use. */
export const checkNetwork = (network: string): string => {
  const problem = findNetworkProblem(network);
  if (problem !== undefined) throw new ProvisionError(problem);
  return network;
};

/** Returns true if the engine has no addresses for another network. By default, it has addresses for about thirty networks. */
export const isOutOfAddresses = (error: unknown): boolean =>
  error instanceof EngineError && /address pool|free subnet/i.test(error.message);

/** Creates the network unless it exists. Throws ProvisionError if the engine has no addresses for it. */
export const ensureNetwork = async (
  engine: Engine,
  name: string,
  labels: Record<string, string>,
  signal: AbortSignal,
): Promise<void> => {
  const isShared = name === SHARED_NETWORK;
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
      { signal, expectedStatuses: [404] },
    );
    if (found) return;
    await engine.json("create the network", "POST", "/networks/create", { body, signal });
  } catch (error) {
    // Another build has created the network since the check.
    if (error instanceof EngineError && error.status === 409) return;
    if (!isOutOfAddresses(error)) throw error;
    throw new ProvisionError(
      "The Docker Engine has no free addresses for another network. Remove unused networks with `docker network prune`, or add `default-address-pools` to the engine's daemon.json.",
      "",
      undefined,
      { cause: error },
    );
  }
};

/** Removes a workspace's own networks; `filters` selects them in the engine's format. */
export const removeNetworks = async (engine: Engine, filters: string, signal: AbortSignal): Promise<void> => {
  const found = await engine.json<{ Id: string }[]>("list networks", "GET", "/networks", {
    query: { filters },
    signal,
  });
  for (const { Id } of found ?? []) {
    await engine.json("remove a network", "DELETE", `/networks/${Id}`, { signal, expectedStatuses: [404] });
  }
};
