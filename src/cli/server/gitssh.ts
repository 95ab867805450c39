// `slipway gitssh`: the ssh command of git in a workspace (GIT_SSH_COMMAND). It runs ssh with the owner's key, which is in a file only
// while ssh runs. The user's own ssh configuration takes precedence (rule EA-17). If the owner has a deploy key for the repository, that
// key is used instead (rule DK-3).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { loadDaemonConfig } from "#base/config.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
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
    const remote = findRemote(input.argv);
    const path = `/api/v2/workspaceagents/me/gitsshkey?remote=${encodeURIComponent(remote)}` as const;
    const { private_key, is_deploy_key } = await new Client(url, token).get(path, { signal: input.signal });
    const home = env.HOME || homedir();
    mkdirSync(join(home, ".ssh"), { recursive: true, mode: 0o700 });
    const [key, config] = [join(folder, "key"), join(folder, "config")];
    writeFileSync(key, private_key, { mode: 0o600 });
    writeFileSync(config, formatConfiguration(home, key, is_deploy_key === true), { mode: 0o600 });
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
    const message =
      error instanceof ApiError ? error.message : `the server is not responding (${describeNetworkError(error)})`;
    input.printError(`slipway gitssh: ${message}\n`);
    return EXIT.failed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

type Env = Record<string, string>;

/** Options of ssh with a value: the rest of the word, or the next word. */
const VALUE_FLAGS = "BbcDEeFIiJLlmOoPpQRSWw";

/**
 * Returns the repository that git requests over ssh: `ssh://host:port/path`, with the port if the command line contains one; empty for
 * anything else.
 */
export const findRemote = (argv: readonly string[]): string => {
  const { options, rest } = readOptions(argv);
  const [destination = "", ...command] = rest;
  const [, host, destinationPort] = /^(?:ssh:\/\/)?(?:[^@]*@)?(\w[\w.-]*)(?::(\d{1,5}))?\/?$/.exec(destination) ?? [];
  // `git-upload-pack '/acme/app.git'`, or from git-lfs `git-lfs-authenticate acme/app.git download`.
  const [, path] = /^git[- ][\w-]+ +'?([^' ]+)'?/.exec(command.join(" ")) ?? [];
  if (host === undefined || path === undefined) return "";
  const port = destinationPort ?? findPort(options);
  return `ssh://${host}${port === undefined ? "" : `:${port}`}/${path.replace(/^\/+/, "")}`;
};

type Option = readonly [name: string, value: string];

/** Parses the options before the destination like ssh: several letters may share a word. */
const readOptions = (argv: readonly string[]): { options: Option[]; rest: readonly string[] } => {
  const options: Option[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? "";
    if (word === "--") return { options, rest: argv.slice(i + 1) };
    if (!/^-./.test(word)) return { options, rest: argv.slice(i) };
    const flagIndex = [...word].findIndex((letter, index) => index > 0 && VALUE_FLAGS.includes(letter));
    if (flagIndex < 0) continue;
    const value = word.slice(flagIndex + 1) || argv[++i] || "";
    options.push([word[flagIndex] ?? "", value]);
  }
  return { options, rest: [] };
};

/** ssh uses the first of several port settings. */
const findPort = (options: readonly Option[]): string | undefined => {
  const ports = options.map(([name, value]) =>
    name === "p" ? value : name === "o" ? /^\s*port\s*[=\s]\s*(\d+)\s*$/i.exec(value)?.[1] : undefined,
  );
  return ports.find((port) => port !== undefined && /^\d{1,5}$/.test(port));
};

/**
 * Formats a configuration in which the user's own comes first: ssh uses the first value of each setting, but tries all keys. A new host's
 * key is stored without asking.
 */
const formatConfiguration = (home: string, key: string, isOnlyKey: boolean): string => {
  const quotePath = (text: string): string => `"${text.replaceAll("%", "%%")}"`;
  return [
    `Include "${home}/.ssh/config"`,
    "Match all",
    `IdentityFile ${quotePath(key)}`,
    // A host accepts the first key that it knows for the whole connection, so keys of an agent must not come before this one.
    ...(isOnlyKey ? ["IdentitiesOnly yes"] : []),
    'Include "/etc/ssh/ssh_config"',
    "Match all",
    `UserKnownHostsFile ${quotePath(`${home}/.ssh/known_hosts`)}`,
    "StrictHostKeyChecking accept-new",
    "",
  ].join("\n");
};
