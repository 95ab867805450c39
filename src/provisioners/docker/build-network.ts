// Creates a network for each build of an image, and removes the network once the engine has ended the build's last step.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { retry } from "#base/retry.ts";
import type { Engine } from "./engine.ts";
import { ensureNetwork, isOutOfAddresses, SHARED_NETWORK } from "./network.ts";

const LABEL = "slipway.build_network";
/** Older networks are removed; no build takes that long. */
const MAX_NETWORK_AGE_MS = 2 * 3_600_000;
/** Delay before the first retry of a removal, and the number of retries. The delay doubles each time: the retries take two minutes. */
const RETRY_MS = 1_000;
const MAX_RETRIES = 7;

/** Networks of ended builds of this process that the engine has not removed yet. */
const unremovedNetworks = new Set<string>();

type BuildDeps = { readonly engine: Engine; readonly clock: Clock; readonly signal: AbortSignal };

/**
 * Calls `build` with the name of a network that no other build uses, and then removes the network in the background. In a shared network, a
 * step could intercept the downloads of another person's build.
 */
export const withBuildNetwork = async (
  { engine, clock, signal }: BuildDeps,
  build: (network: string) => Promise<void>,
): Promise<void> => {
  await removeAbandoned(engine, clock.now(), signal);
  const name = `${SHARED_NETWORK}-build-${uuid()}`;
  let isOwn = true;
  try {
    isOwn = await createNetwork(engine, name);
    signal.throwIfAborted();
    if (!isOwn) await ensureNetwork(engine, SHARED_NETWORK, {}, signal);
    await build(isOwn ? name : SHARED_NETWORK);
  } finally {
    if (isOwn) void removeWhenFree(engine, clock, name);
  }
};

/** Creates the network. Returns false if the engine has no free addresses for it. */
const createNetwork = async (engine: Engine, name: string): Promise<boolean> => {
  const body = { Name: name, CheckDuplicate: true, Driver: "bridge", Labels: { [LABEL]: "1" } };
  try {
    // This request is not canceled with the build, because the engine could then create the network after its removal.
    await engine.json("create the network of a build", "POST", "/networks/create", { body });
    return true;
  } catch (error) {
    if (isOutOfAddresses(error)) return false;
    throw error;
  }
};

/** Removes the network. Retries, because the engine refuses while it ends a step of a canceled build. */
const removeWhenFree = async (engine: Engine, clock: Clock, name: string): Promise<void> => {
  unremovedNetworks.add(name);
  try {
    const delay = (_: unknown, failures: number) =>
      failures > MAX_RETRIES ? undefined : RETRY_MS * 2 ** (failures - 1);
    await retry(clock, () => removeNetwork(engine, name), delay);
  } catch (error) {
    log("docker").warn("a build network is kept until a later build: {error}", { error });
  }
};

const removeNetwork = async (engine: Engine, name: string): Promise<void> => {
  await engine.json("remove the network of a build", "DELETE", `/networks/${name}`, { expectedStatuses: [404] });
  unremovedNetworks.delete(name);
};

/**
 * Removes networks that this process could not remove, and old networks of servers that were killed. Other networks may belong to a build
 * of another server.
 */
const removeAbandoned = async (engine: Engine, now: number, signal: AbortSignal): Promise<void> => {
  const query = { filters: JSON.stringify({ label: [LABEL] }) };
  type Network = { readonly Name: string; readonly Created?: string };
  const networks = (await engine.json<Network[]>("list networks", "GET", "/networks", { query, signal })) ?? [];
  for (const { Name, Created = "" } of networks) {
    if (!unremovedNetworks.has(Name) && now - Date.parse(Created) <= MAX_NETWORK_AGE_MS) continue;
    signal.throwIfAborted();
    await removeNetwork(engine, Name).catch((error: unknown) => {
      log("docker").warn("a build network is kept until a later build: {error}", { error });
    });
  }
};
