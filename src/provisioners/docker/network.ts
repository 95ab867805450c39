// The networks of workspaces. Containers of one workspace may communicate, those of different workspaces may not. A workspace with one
// container joins a network in which the engine isolates containers; one with several has its own network, in which each is reachable by
// its resource's name. Both reach the internet and this machine.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { type Engine, EngineError } from "./engine.ts";
import { findNetworkProblem } from "./network-name.ts";

/** The network shared by single-container workspaces, which are isolated from each other. */
export const SHARED_NETWORK = "slipway";

/** Returns the engine's network for containers whose template names none; `count` is the workspace's number of containers. */
export const chooseNetwork = ({ workspace }: ProvisionRequest, count: number): string =>
  count > 1 ? `${SHARED_NETWORK}-${workspace.id}` : SHARED_NETWORK;

/** Returns a network that a template names. Throws ProvisionError for one that a workspace cannot use. */
export const checkNetwork = (network: string): string => {
  const problem = findNetworkProblem(network);
  if (problem !== undefined) throw new ProvisionError(problem);
  return network;
};

/** Creates the network unless it exists. */
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
      { signal, fine: [404] },
    );
    if (found) return;
    await engine.json("create the network", "POST", "/networks/create", { body, signal });
  } catch (error) {
    // Another build has created it at the same moment.
    if (error instanceof EngineError && error.status === 409) return;
    throw error;
  }
};

/** Removes a workspace's own networks; `filters` selects them in the engine's format. */
export const removeNetworks = async (engine: Engine, filters: string, signal: AbortSignal): Promise<void> => {
  const found = await engine.json<{ Id: string }[]>("list networks", "GET", "/networks", {
    query: { filters },
    signal,
  });
  for (const { Id } of found ?? []) {
    await engine.json("remove a network", "DELETE", `/networks/${Id}`, { signal, fine: [404] });
  }
};

const BUILD_LABEL = "slipway.build_network";
/** Longer than any build. */
const ABANDONED_MS = 3 * 3_600_000;

type OfBuild = { readonly engine: Engine; readonly clock: Clock; readonly signal: AbortSignal };

/**
 * Runs a build of an image with the name of a network of its own. In a shared one, its steps could answer in place of the internet what
 * the steps of another person's build download.
 */
export const withBuildNetwork = async (
  { engine, clock, signal }: OfBuild,
  build: (network: string) => Promise<void>,
): Promise<void> => {
  await removeAbandoned(engine, clock.now(), signal);
  const name = `${SHARED_NETWORK}-build-${uuid()}`;
  const body = { Name: name, CheckDuplicate: true, Driver: "bridge", Labels: { [BUILD_LABEL]: "1" } };
  try {
    await engine.json("create the network of a build", "POST", "/networks/create", { body, signal });
  } catch (error) {
    // An engine has addresses for about thirty networks. In this one, it lets no packet through between containers.
    if (!(error instanceof EngineError) || !/address pool/.test(error.message)) throw error;
    await ensureNetwork(engine, SHARED_NETWORK, {}, signal);
    return build(SHARED_NETWORK);
  }
  try {
    await build(name);
  } finally {
    // Also after the signal has fired. The engine may still be ending a step.
    await engine
      .json("remove the network of a build", "DELETE", `/networks/${name}`, { fine: [404] })
      .catch((error: unknown) => log("docker").warn("a network stays until a later build: {error}", { error }));
  }
};

/** Removes the networks of builds that did not end, because their server was killed. Others may belong to another server. */
const removeAbandoned = async (engine: Engine, now: number, signal: AbortSignal): Promise<void> => {
  const query = { filters: JSON.stringify({ label: [BUILD_LABEL] }) };
  type Network = { readonly Id: string; readonly Created?: string };
  const found = (await engine.json<Network[]>("list networks", "GET", "/networks", { query, signal })) ?? [];
  for (const { Id, Created = "" } of found) {
    if (now - Date.parse(Created) <= ABANDONED_MS) continue;
    await engine.json("remove a network", "DELETE", `/networks/${Id}`, { signal, fine: [403, 404, 409] });
  }
};
