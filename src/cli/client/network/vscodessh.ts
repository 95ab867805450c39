// `slipway vscodessh HOST`: the ProxyCommand of older versions of VS Code's plug-in, which do not support wildcard hosts. The server's
// address and the token are in two files that the plug-in maintains.
import { type Arguments, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { connect } from "./ssh.ts";

const VALUES = ["network-info-dir", "log-dir", "session-token-file", "url-file"] as const;
const SHAPE = { values: VALUES, switches: ["verbose"], short: { v: "verbose" } } as const;

export const run: RunVerb = async (input) => {
  const args: Arguments<(typeof VALUES)[number], never, "verbose"> = readArguments(input.argv, SHAPE);
  const { words, value, has } = args;
  const host = takeOneWord(input, words, "the host, such as coder-vscode--alice--dev") ?? "";
  const [url, token] = [value["url-file"], value["session-token-file"]].map((file) =>
    file === undefined ? undefined : readText(input, file),
  );
  const flags = { ...value, ...(url ? { url } : {}), ...(token ? { token } : {}) };
  return withServer("vscodessh", input, flags, (remote) =>
    connect(
      input,
      remote,
      parseWorkspace(host),
      { ...args, list: { env: [] }, has: { ...has, stdio: true, "forward-agent": false, "disable-autostart": false } },
      { wait: "auto", app: "vscode" },
    ),
  );
};

/** Converts `coder-vscode.HOST--alice--dev.main`, or the older `...--alice--dev--main`, to the form of other commands: `alice/dev.main`. */
const parseWorkspace = (host: string): string => {
  const [, owner, workspace, agent] = /^.*?--([^-](?:-?[^-])*)--([^-](?:-?[^-])*)(?:--(.+))?$/.exec(host) ?? [];
  if (!owner || !workspace) throw new VerbFailure(`${host} does not name a workspace`);
  return agent ? `${owner}/${workspace}.${agent}` : `${owner}/${workspace}`;
};

const readText = ({ readFile }: VerbInput, file: string): string => {
  try {
    return readFile(file).trim();
  } catch (error) {
    throw new VerbFailure(`${file} cannot be read: ${(error as Error).message}`);
  }
};
