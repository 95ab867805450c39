// `slipway health [--url URL] [--json]`: requests /readyz from the local server or from an address. For HEALTHCHECK in the image and for
// scripts.
import { type Config, getAccessUrl, loadClientConfig, loadConfig } from "#base/config.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import { usageError } from "#base/usage-error.ts";
import { takeOptions } from "../options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";

const TIMEOUT_MS = 4000;

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { words, options, rest: argv } = takeOptions(rest, ["url"]);
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  const target = options.url === undefined ? parseOwnServer(input, argv) : parseRemoteServer(input, options.url, argv);
  const printResult = (ready: boolean, url: URL, message: string): number => {
    if (json) input.print(JSON.stringify({ ready, url: url.href, detail: message }));
    else if (ready) input.print(message);
    else input.printError(`not ready: ${url} ${message}\n`);
    return ready ? EXIT.ok : EXIT.failed;
  };
  const { url, host, isOwn } = target;
  const timeout = new AbortController();
  const timer = input.clock.after(TIMEOUT_MS, () =>
    timeout.abort(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)),
  );
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([input.signal, timeout.signal]),
      redirect: "manual",
      // The local server is called by address, which its certificate does not contain; no secret is sent.
      ...(isOwn ? { tls: { rejectUnauthorized: false } } : {}),
      headers: host ? { host } : {},
    });
    await response.body?.cancel();
    return printResult(response.ok, url, response.ok ? "ready" : `answered ${response.status}`);
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    return printResult(false, url, `does not answer (${describeNetworkError(error)})`);
  } finally {
    timer.cancel();
  }
};

/** Returns the local server's response as JSON, an empty object for other text, or undefined if the request fails. */
export const requestOwnServer = async (
  config: Config,
  path: string,
  signal: AbortSignal,
): Promise<{ version?: string } | undefined> => {
  const { url, host } = toTarget(config, path);
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

/** Returns the server of the settings. Throws UsageError if they contain no port. */
const parseOwnServer = (input: VerbInput, argv: readonly string[]): Target => {
  const { config } = loadConfig({ ...input, argv });
  return toTarget(config, "/readyz");
};

const toTarget = (config: Config, path: string): Target => {
  const { port } = config.address;
  if (port === 0)
    throw usageError("health", "cannot determine the port of a server that picks one; pass --address or --url");
  // Uses the bound address instead of the access URL: the result must not depend on a proxy.
  const url = new URL(path, getAccessUrl({ ...config, access_url: undefined }, port));
  // The server only accepts its own host names, which the setting contains.
  return { url, host: config.allowed_hosts?.[0], isOwn: true };
};

/**
 * Returns a server at an address, possibly behind a proxy. Throws UsageError for an invalid address, and for settings, which would have no
 * effect.
 */
const parseRemoteServer = (input: VerbInput, text: string, [more]: readonly string[]): Target => {
  if (more !== undefined) throw usageError(more, "not with --url");
  const { url } = loadClientConfig(input, { url: text });
  return { url: new URL("/readyz", url), host: undefined, isOwn: false };
};
