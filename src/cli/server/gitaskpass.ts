// `slipway gitaskpass PROMPT`: answers prompts of git in a workspace for user names and passwords (GIT_ASKPASS) with the owner's token at
// the URL's provider. While no account is linked, it prints where to link one and waits (rules EA-18, EA-19). URLs of other hosts are left
// to git, which then prompts the user. With SLIPWAY_GIT_NO_WAIT=1 it fails instead of waiting.
import type { Clock } from "#base/clock.ts";
import { loadDaemonConfig } from "#base/config.ts";
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import type { AgentExternalAuth } from "#schema/users/external-auth.ts";
import { ApiError, Client } from "#src/client.ts";
import { EXIT, type RunVerb } from "../verb.ts";

const RETRY_INTERVAL_MS = 1_000;

export const run: RunVerb = async (input) => {
  const [prompt = ""] = input.argv;
  const { url, token } = loadDaemonConfig({ ...input, argv: [] });
  const [field, remoteUrl] = parsePrompt(prompt);
  if (remoteUrl === undefined && /^(Username|Password) for '/.test(prompt)) {
    input.printError("slipway gitaskpass: it is not clear which host git asks for\n");
    return EXIT.failed;
  }
  if (remoteUrl === undefined) {
    throw usageError("gitaskpass", "git calls it with a prompt such as \"Username for 'https://git.example.com': \"");
  }
  const client = new Client(url, token);
  try {
    const credentials = await loadToken(client, remoteUrl, input.signal);
    if (credentials.url !== "") input.printError(`slipway: to continue, link your account at ${credentials.url}\n`);
    if (credentials.url !== "" && input.env.SLIPWAY_GIT_NO_WAIT === "1") return EXIT.failed;
    const { username, password } = withoutTokenName(
      credentials.url === "" ? credentials : await waitForLink(client, remoteUrl, input),
    );
    input.print(field === "Username" ? username : password);
    return EXIT.ok;
  } catch (error) {
    if (input.signal.aborted) return EXIT.interrupted;
    const isOtherHost = error instanceof ApiError && error.status === 404 && !error.body.detail;
    if (!isOtherHost) input.printError(`slipway gitaskpass: ${(error as Error).message}\n`);
    return EXIT.failed;
  }
};

/**
 * Returns what git asks for and the URL, without its user part. Returns nothing when the prompt is ambiguous: older versions of git print a
 * user name unescaped, which can look like another host, as in `https://git.example/@evil.example`.
 */
const parsePrompt = (prompt: string): [field?: string, remoteUrl?: string] => {
  const [, field, scheme, address = ""] = /^(Username|Password) for '(https?:\/\/)([^'\s]+)': ?$/.exec(prompt) ?? [];
  const [user, host] = [address.slice(0, address.lastIndexOf("@") + 1), address.slice(address.lastIndexOf("@") + 1)];
  const remoteUrl = `${scheme}${host}`;
  return URL.canParse(remoteUrl) && !/[/\\?#]/.test(user) ? [field, remoteUrl] : [];
};

/**
 * Moves a token from the username to the password. Git repeats the username in the prompt for the password, which is an argument of this
 * program, and other users of the machine can list arguments. Hosts that accept a token as the username also accept it as the password.
 */
const withoutTokenName = ({
  username,
  password,
}: AgentExternalAuth): Pick<AgentExternalAuth, "username" | "password"> =>
  password === "" ? { username: "x-access-token", password: username } : { username, password };

const loadToken = (
  client: Client,
  remoteUrl: string,
  signal: AbortSignal,
  extraQuery = "",
): Promise<AgentExternalAuth> => {
  const path =
    `/api/v2/workspaceagents/me/external-auth?match=${encodeURIComponent(new URL(remoteUrl).href)}${extraQuery}` as const;
  return client.get(path, { signal });
};

/** Waits without a time limit, and across restarts of the server. */
const waitForLink = async (
  client: Client,
  remoteUrl: string,
  { signal, clock }: { signal: AbortSignal; clock: Clock },
): Promise<AgentExternalAuth> => {
  for (;;) {
    try {
      return await loadToken(client, remoteUrl, signal, "&listen=true");
    } catch (error) {
      const isFinal = error instanceof ApiError && error.status !== 503;
      if (isFinal || signal.aborted) throw error;
      await pause(clock, RETRY_INTERVAL_MS);
    }
  }
};
