// `slipway gitssh`: the ssh that git of a workspace runs (GIT_SSH_COMMAND). It is ssh with the owner's key, which lies in a file of its
// own only while ssh runs; what the person's own ssh configuration says goes first (rule EA-17).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { loadDaemonConfig } from "#base/config.ts";
import { failureWords } from "#base/network/failure-words.ts";
import { ApiError, Client } from "#src/client.ts";
import { EXIT, type RunVerb } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const { url, token } = loadDaemonConfig({ ...input, argv: [] });
  const env = Object.fromEntries(Object.entries(input.env).filter(([, value]) => value !== undefined)) as Env;
  const ssh = Bun.which("ssh", { PATH: env.PATH ?? "" });
  if (ssh === null) {
    input.printError("slipway gitssh: ssh is not installed in this workspace; install the OpenSSH client\n");
    return EXIT.failed;
  }
  const folder = mkdtempSync(join(tmpdir(), "slipway-ssh-"));
  try {
    const { private_key } = await new Client(url, token).get("/api/v2/workspaceagents/me/gitsshkey", {
      signal: input.signal,
    });
    const home = env.HOME || homedir();
    mkdirSync(join(home, ".ssh"), { recursive: true, mode: 0o700 });
    const [key, config] = [join(folder, "key"), join(folder, "config")];
    writeFileSync(key, private_key, { mode: 0o600 });
    writeFileSync(config, configuration(home, key), { mode: 0o600 });
    const child = Bun.spawn([ssh, "-F", config, ...input.argv], {
      env,
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    });
    input.signal.addEventListener("abort", () => child.kill(), { once: true });
    return await child.exited;
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    const words = error instanceof ApiError ? error.message : `the server is not responding (${failureWords(error)})`;
    input.printError(`slipway gitssh: ${words}\n`);
    return EXIT.failed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

type Env = Record<string, string>;

/** The first value of each setting counts, so ours come last; keys add up. A host seen for the first time is remembered, not asked about. */
const configuration = (home: string, key: string): string => {
  const path = (text: string): string => `"${text.replaceAll("%", "%%")}"`;
  return [
    `Include "${home}/.ssh/config"`,
    "Match all",
    `IdentityFile ${path(key)}`,
    'Include "/etc/ssh/ssh_config"',
    "Match all",
    `UserKnownHostsFile ${path(`${home}/.ssh/known_hosts`)}`,
    "StrictHostKeyChecking accept-new",
    "",
  ].join("\n");
};
