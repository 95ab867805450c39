// `slipway config-ssh`: adds a section to OpenSSH's configuration, with which `ssh slipway.NAME`, and so scp, sftp, rsync, git and editors,
// connect to workspaces. Only this section is changed. It contains no token, because `slipway ssh` uses the stored session (rule CN-4).
import { getOwnCommand } from "#base/program.ts";
import { quoteForShell } from "#base/text/shell-quote.ts";
import { usageError } from "#base/usage-error.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import type { RunVerb } from "../../verb.ts";
import { explainError, makeClient } from "../remote.ts";
import { DEFAULT_PREFIX } from "./host-names.ts";
import { addSection, getConfigPath, removeSection, writeConfig } from "./ssh-config.ts";

const SHAPE = { values: ["file", "prefix"], lists: ["option"], switches: ["dry-run", "remove"] } as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, SHAPE);
  requireNoWords(words);
  const prefix = value.prefix ?? DEFAULT_PREFIX;
  if (!/^[\w.-]+$/.test(prefix)) throw usageError("--prefix", "expected letters, digits, dots and hyphens");
  const invalid = list.option.find((one) => !/^[A-Za-z]+[ =][^\n]+$/.test(one));
  if (invalid !== undefined)
    throw usageError("--option", `expected an option of OpenSSH, such as ForwardAgent=yes, got ${invalid}`);
  return explainError("config-ssh", input, async () => {
    const file = getConfigPath(input.env, value.file);
    const before = readConfig(file, input.readFile);
    let after = removeSection(before);
    if (!has.remove) {
      const { url } = makeClient(input, value);
      after = addSection(after, {
        prefix,
        options: list.option,
        command: formatProxyCommand(url, prefix, value.url !== undefined),
      });
    }
    if (has["dry-run"]) {
      input.print(after.trimEnd());
      return;
    }
    if (after !== before) writeConfig(file, after);
    input.print(
      has.remove
        ? `${file} no longer has a Slipway section`
        : `${file} is ready: \`ssh ${prefix}NAME\` opens the workspace NAME`,
    );
  });
};

const readConfig = (file: string, readFile: (path: string) => string): string => {
  try {
    return readFile(file);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return "";
    throw new VerbFailure(`${file} cannot be read: ${(error as Error).message}`);
  }
};

/**
 * Returns the ProxyCommand, quoted for the shell with which OpenSSH runs it. Contains the address only if it was given explicitly;
 * otherwise the stored session's is used.
 */
const formatProxyCommand = (url: URL, prefix: string, isExplicit: boolean): string => {
  const urlFlag = isExplicit ? ["--url", url.href] : [];
  const words = [...getOwnCommand(), "ssh", "--stdio", "--host-prefix", prefix, ...urlFlag];
  return `${words.map((word) => quoteForShell(word).replaceAll("%", "%%")).join(" ")} %h`;
};
