// `slipway agent`: the daemon inside a workspace. Runs until stopped.
import { loadDaemonConfig, SECRET_VARIABLES } from "#base/config.ts";
import { startLogging } from "../logging.ts";
import { EXIT, type RunVerb } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const settings = loadDaemonConfig(input);
  input.forgetVariables?.(SECRET_VARIABLES);
  startLogging(settings, input);
  // The server of a local workspace with the same user finds the workspace's processes by their environment.
  if (input.env.SLIPWAY_SHARES_USER !== "true") input.protectMemory?.();
  const { runDaemon } = await import("#src/daemon/daemon.ts");
  const { url, token, folder, token_file, orphan_timeout: timeout } = settings;
  const paths = [folder, token_file].filter((one) => one !== undefined);
  await runDaemon({
    url,
    token,
    signal: input.signal,
    clock: input.clock,
    env: input.env,
    orphan: { paths, timeout_ms: timeout },
  });
  return EXIT.ok;
};
