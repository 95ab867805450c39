// `slipway health [--json]`: asks the server on this machine for /readyz. For HEALTHCHECK in the image and for scripts.
import { accessUrl, loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { EXIT, type RunVerb, takeSwitch } from "../verb.ts";

const DEADLINE_MS = 4000;

export const run: RunVerb = async (input) => {
  const { given: json, rest: argv } = takeSwitch(input.argv, "--json");
  const { config } = loadConfig({ ...input, argv });
  const answer = (ready: boolean, url: URL, said: string): number => {
    if (json) input.print(JSON.stringify({ ready, url: url.href, detail: said }));
    else if (ready) input.print(said);
    else input.printError(`not ready: ${url} ${said}\n`);
    return ready ? EXIT.ok : EXIT.failed;
  };
  const { port } = config.address;
  if (port === 0) throw usageError("health", "cannot know the port of a server that chooses it; give --address");
  // The bound address and not the access URL: the answer must not depend on a proxy.
  const url = new URL("/readyz", accessUrl({ ...config, access_url: undefined }, port));
  // The server answers only to its own names; the setting is the way to know one.
  const host = config.allowed_hosts?.[0];
  const late = new AbortController();
  const timer = input.clock.after(DEADLINE_MS, () => late.abort(new Error(`no answer within ${DEADLINE_MS / 1000} s`)));
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([input.signal, late.signal]),
      redirect: "manual",
      // Asked by address, which the certificate does not name; nothing secret is said.
      tls: { rejectUnauthorized: false },
      headers: host ? { host } : {},
    });
    await response.body?.cancel();
    return answer(response.ok, url, response.ok ? "ready" : `answered ${response.status}`);
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    return answer(false, url, `does not answer (${error instanceof Error ? error.message : String(error)})`);
  } finally {
    timer.cancel();
  }
};
