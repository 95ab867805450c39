// `slipway health [--url URL] [--json]`: asks a server for /readyz, the one on this machine or that of an address. For HEALTHCHECK in the
// image and for scripts.
import { accessUrl, type Config, loadClientConfig, loadConfig } from "#base/config.ts";
import { failureWords } from "#base/network/failure-words.ts";
import { usageError } from "#base/usage-error.ts";
import { takeOptions } from "../options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";

const DEADLINE_MS = 4000;

export const run: RunVerb = async (input) => {
  const { given: json, rest } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(rest, ["url"]);
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const target = options.url === undefined ? ownServer(input, argv) : elsewhere(input, options.url, argv);
  const answer = (ready: boolean, url: URL, said: string): number => {
    if (json) input.print(JSON.stringify({ ready, url: url.href, detail: said }));
    else if (ready) input.print(said);
    else input.printError(`not ready: ${url} ${said}\n`);
    return ready ? EXIT.ok : EXIT.failed;
  };
  const { url, host, isOwn } = target;
  const late = new AbortController();
  const timer = input.clock.after(DEADLINE_MS, () => late.abort(new Error(`no answer within ${DEADLINE_MS / 1000} s`)));
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([input.signal, late.signal]),
      redirect: "manual",
      // One's own server is asked by address, which its certificate does not name; nothing secret is said.
      ...(isOwn ? { tls: { rejectUnauthorized: false } } : {}),
      headers: host ? { host } : {},
    });
    await response.body?.cancel();
    return answer(response.ok, url, response.ok ? "ready" : `answered ${response.status}`);
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    return answer(false, url, `does not answer (${failureWords(error)})`);
  } finally {
    timer.cancel();
  }
};

/** Asks the server of these settings; undefined unless it answers with a success. What it says as JSON, or an empty object. */
export const askOwnServer = async (
  config: Config,
  path: string,
  signal: AbortSignal,
): Promise<{ version?: string } | undefined> => {
  const { url, host } = addressOf(config, path);
  try {
    const response = await fetch(url, {
      signal,
      redirect: "manual",
      tls: { rejectUnauthorized: false },
      headers: host ? { host } : {},
    });
    const text = await response.text();
    if (!response.ok) return undefined;
    return text.startsWith("{") ? (JSON.parse(text) as { version?: string }) : {};
  } catch {
    return undefined;
  }
};

type Target = { url: URL; host: string | undefined; isOwn: boolean };

/** The server of the settings. Throws UsageError where they do not say on which port it is. */
const ownServer = (input: VerbInput, argv: readonly string[]): Target => {
  const { config } = loadConfig({ ...input, argv });
  return addressOf(config, "/readyz");
};

const addressOf = (config: Config, path: string): Target => {
  const { port } = config.address;
  if (port === 0)
    throw usageError("health", "cannot determine the port of a server that picks one; pass --address or --url");
  // The bound address and not the access URL: the answer must not depend on a proxy.
  const url = new URL(path, accessUrl({ ...config, access_url: undefined }, port));
  // The server answers only to its own names; the setting is the way to know one.
  return { url, host: config.allowed_hosts?.[0], isOwn: true };
};

/** A server at an address, also behind a proxy. Throws UsageError for what is none, and for settings, which would mean nothing. */
const elsewhere = (input: VerbInput, text: string, [more]: readonly string[]): Target => {
  if (more !== undefined) throw usageError(more, "not with --url");
  const { url } = loadClientConfig(input, { url: text });
  return { url: new URL("/readyz", url), host: undefined, isOwn: false };
};
