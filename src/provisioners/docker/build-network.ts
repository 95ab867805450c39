// Gives each build of an image a network of its own, and removes it once the engine has ended the build's last step.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { retry } from "#base/retry.ts";
import type { Engine } from "./engine.ts";
import { ensureNetwork, isOutOfAddresses, SHARED_NETWORK } from "./network.ts";

const LABEL = "slipway.build_network";
/** Longer than any build. */
const ABANDONED_MS = 2 * 3_600_000;
/** Delay before a removal is retried, which doubles, and the number of retries: two minutes altogether. */
const RETRY_MS = 1_000;
const RETRIES = 7;

/** The networks whose builds have ended in this process, and which the engine has not removed yet. */
const ended = new Set<string>();

type ForBuild = { readonly engine: Engine; readonly clock: Clock; readonly signal: AbortSignal };

/**
 * Runs a build of an image with the name of a network of its own. In a shared one, its steps could answer in place of the internet what
 * the steps of another person's build download. Removes the network in the background.
 */
export const withBuildNetwork = async (
  { engine, clock, signal }: ForBuild,
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

/** Returns false if the engine has no addresses left. */
const createNetwork = async (engine: Engine, name: string): Promise<boolean> => {
  const body = { Name: name, CheckDuplicate: true, Driver: "bridge", Labels: { [LABEL]: "1" } };
  try {
    // Not canceled with the build: the engine could still create the network after its removal.
    await engine.json("create the network of a build", "POST", "/networks/create", { body });
    return true;
  } catch (error) {
    if (isOutOfAddresses(error)) return false;
    throw error;
  }
};

/** Removes the network. The engine refuses while it ends a step of a canceled build, which takes a moment. */
const removeWhenFree = async (engine: Engine, clock: Clock, name: string): Promise<void> => {
  ended.add(name);
  try {
    const delay = (_: unknown, failures: number) => (failures > RETRIES ? undefined : RETRY_MS * 2 ** (failures - 1));
    await retry(clock, () => removeNetwork(engine, name), delay);
  } catch (error) {
    log("docker").warn("a network stays until a later build: {error}", { error });
  }
};

const removeNetwork = async (engine: Engine, name: string): Promise<void> => {
  await engine.json("remove the network of a build", "DELETE", `/networks/${name}`, { expectedStatuses: [404] });
  ended.delete(name);
};

/**
 * Removes the networks that this process could not remove, and old ones, whose server was killed. Other networks may belong to a build of
 * another server.
 */
const removeAbandoned = async (engine: Engine, now: number, signal: AbortSignal): Promise<void> => {
  const query = { filters: JSON.stringify({ label: [LABEL] }) };
  type Network = { readonly Name: string; readonly Created?: string };
  const found = (await engine.json<Network[]>("list networks", "GET", "/networks", { query, signal })) ?? [];
  for (const { Name, Created = "" } of found) {
    if (!ended.has(Name) && now - Date.parse(Created) <= ABANDONED_MS) continue;
    signal.throwIfAborted();
    await removeNetwork(engine, Name).catch((error: unknown) => {
      log("docker").warn("a network stays until a later build: {error}", { error });
    });
  }
};
