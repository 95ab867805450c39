// Installs an agent in a running container: the program, a token that only its user can read, and a background process.
import type { Clock } from "#base/clock.ts";
import { createTar, PROGRAM_PATH } from "#base/program-tar.ts";
import type { ContainerEngine } from "./engine.ts";
import { runInContainer, startInBackground } from "./exec.ts";
import { type ContainerNetworks, findRoute, Relay } from "./relay.ts";

export type InjectionOptions = {
  engine: ContainerEngine;
  clock: Clock;
  /** The compiled program on this machine. */
  program: string;
  /** The server's URL as this machine reaches it. */
  server: URL;
  container: string;
  /** The user that works in the container. */
  user: string;
  token: string;
  /** The environment of programs in the container. */
  env: Readonly<Record<string, string>>;
};

/** An agent that was installed in a container. */
export type InjectedAgent = { readonly exec: string; readonly folder: string; readonly relay: Relay | undefined };

// Removes the folder of an earlier agent first; that agent exits when its token file is removed.
const WRITE_TOKEN_SCRIPT = `umask 077
rm -rf /tmp/slipway-agent-* 2>/dev/null
folder=$(mktemp -d /tmp/slipway-agent-XXXXXX) && cat >"$folder/token" && echo "$folder"`;

const START_SCRIPT = `SHELL=$( (getent passwd "$(id -u)" || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd) 2>/dev/null | head -n 1 | cut -d: -f7)
[ -x "$SHELL" ] || SHELL=/bin/sh
export SHELL
exec "$0" agent >agent.log 2>&1`;

/** An agent that cannot reach its server for this long exits; the daemon outside starts it again if needed. */
const ORPHAN_TIMEOUT = "1h";

/** Installs and starts the agent. Rejects with a readable message if the agent cannot be started. */
export const injectAgent = async (options: InjectionOptions): Promise<InjectedAgent> => {
  const { engine, program, server, container, user, token } = options;
  const path = `/containers/${encodeURIComponent(container)}`;
  await engine.upload(`${path}/archive?path=/`, createTar(program, PROGRAM_PATH));
  const toContainerProgram = (command: readonly string[]) => ({ container, user, command });
  await runInContainer(options, toContainerProgram([PROGRAM_PATH, "version"])).catch((error: Error) => {
    throw new Error(`The agent's program does not run in this container: ${error.message}`);
  });
  const route = findRoute(server, await engine.json<ContainerNetworks>("GET", `${path}/json`));
  const relay = route.kind === "relay" ? await Relay.listen(server, route) : undefined;
  try {
    const folder = await runInContainer(
      options,
      toContainerProgram(["/bin/sh", "-c", WRITE_TOKEN_SCRIPT]),
      `${token}\n`,
    );
    const exec = await startInBackground(options, {
      ...toContainerProgram(["/bin/sh", "-c", START_SCRIPT, PROGRAM_PATH]),
      directory: folder,
      env: {
        ...options.env,
        SLIPWAY_AGENT_URL: (relay?.url ?? server).href,
        SLIPWAY_AGENT_TOKEN_FILE: `${folder}/token`,
        SLIPWAY_AGENT_ORPHAN_TIMEOUT: ORPHAN_TIMEOUT,
      },
    });
    return { exec, folder, relay };
  } catch (error) {
    relay?.[Symbol.dispose]();
    throw error;
  }
};

/** Ends the agent by removing its token file. Succeeds if the container no longer exists. */
export const removeAgent = async (
  { engine, clock, container, user }: Pick<InjectionOptions, "engine" | "clock" | "container" | "user">,
  { folder, relay }: InjectedAgent,
): Promise<void> => {
  relay?.[Symbol.dispose]();
  await runInContainer({ engine, clock }, { container, user, command: ["rm", "-rf", folder] }).catch(() => {});
};
