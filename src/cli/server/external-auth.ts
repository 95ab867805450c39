// `slipway external-auth access-token ID`: prints the owner's token at a provider, for scripts of a workspace. Without a linked account it
// prints the page for linking one and fails, so that a script can detect it (rule EA-21).
import { loadDaemonConfig } from "#base/config.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import { usageError } from "#base/usage-error.ts";
import type { AgentExternalAuth } from "#schema/users/external-auth.ts";
import { ApiError, Client } from "#src/client.ts";
import { EXIT, type RunVerb } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const [word, id, ...more] = input.argv;
  if (word !== "access-token" || id === undefined || more.length > 0 || id.startsWith("-")) {
    throw usageError("external-auth", "expected: access-token ID");
  }
  const { url, token } = loadDaemonConfig({ ...input, argv: [] });
  try {
    const path = `/api/v2/workspaceagents/me/external-auth?id=${encodeURIComponent(id)}` as const;
    const found = await new Client(url, token).get<AgentExternalAuth>(path, { signal: input.signal });
    input.print(found.url === "" ? found.access_token : found.url);
    return found.url === "" ? EXIT.ok : EXIT.failed;
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    const message =
      error instanceof ApiError ? error.message : `the server is not responding (${describeNetworkError(error)})`;
    input.printError(`slipway external-auth: ${message}\n`);
    return EXIT.failed;
  }
};
