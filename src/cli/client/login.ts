// `slipway login [URL]`: signs in with a password or a token and stores the session for other commands (rule CV-1). Secrets are prompted
// for or read from standard input, never taken from an argument, which other users of the machine could read.
import { loadClientConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { ApiError, Client } from "#src/client.ts";
import { type Arguments, readArguments, requireNoWords } from "../arguments.ts";
import { Prompter, readAllInput } from "../ask.ts";
import { VerbFailure } from "../failure.ts";
import { getStreams } from "../streams.ts";
import { toPlainLine } from "../text.ts";
import type { RunVerb, VerbInput } from "../verb.ts";
import { explainError } from "./remote.ts";
import { readSession, writeSession } from "./session.ts";

const SHAPE = {
  values: ["email", "code"],
  switches: ["password-stdin", "token-stdin", "use-token-as-session"],
} as const;
type LoginArguments = Arguments<"email" | "code", never, "password-stdin" | "token-stdin" | "use-token-as-session">;

export const run: RunVerb = async (input) => {
  const args = readArguments(input.argv, SHAPE);
  const url = resolveAddress(args, input);
  return explainError("login", input, async ({ setServer }) => {
    setServer(url);
    await requireSlipway(url, input);
    if (url.protocol === "http:" && !isThisMachine(url.hostname)) {
      input.printError(`Warning: ${url.origin} is not encrypted; others on the network can read what you type.\n`);
    }
    const client = await signIn(new Client(url, undefined, input.headers), args, input);
    const { username, email } = await client.get("/api/v2/users/me", input);
    const file = writeSession(input, { url: url.href, token: client.token ?? "", username });
    const summary = { url: url.href, username, email, file };
    input.print(args.has.json ? JSON.stringify(summary) : `Signed in to ${url.origin} as ${toPlainLine(username)}.`);
  });
};

/** Returns the address from an argument, a flag, the environment, or the last sign-in. Throws UsageError. */
const resolveAddress = ({ words, value, has }: LoginArguments, input: VerbInput): URL => {
  const [word, ...more] = words;
  requireNoWords(more);
  if (word !== undefined && value.url !== undefined) throw usageError("--url", "given twice");
  if (value.token !== undefined)
    throw usageError("--token", "other users of this machine could read it: use --token-stdin");
  if (has["password-stdin"] && has["token-stdin"]) throw usageError("--token-stdin", "not with --password-stdin");
  if (has["password-stdin"] && value.email === undefined) throw usageError("--email", "--password-stdin needs it");
  return loadClientConfig(input, { url: word ?? value.url }, readLastSession(input)).url;
};

/** Ignores a damaged session file, because signing in replaces it. */
const readLastSession = (input: VerbInput) => {
  try {
    return readSession(input);
  } catch {
    return undefined;
  }
};

/** Checks that the address is a Slipway server before anyone types a password. */
const requireSlipway = async (url: URL, { signal, headers }: VerbInput): Promise<void> => {
  const request = new Client(url, undefined, headers).get("/api/v2/buildinfo", { signal });
  const buildInfo = await request.catch((error) => {
    if (error instanceof ApiError) return null;
    throw error;
  });
  if (typeof buildInfo?.version !== "string") throw new VerbFailure(`${url.origin} is not a Slipway server`);
};

const signIn = async (client: Client, { value, has }: LoginArguments, input: VerbInput): Promise<Client> => {
  const streams = getStreams(input);
  // Editor plug-ins pass the token in the environment.
  const { SLIPWAY_TOKEN, CODER_SESSION_TOKEN } = input.env;
  if (has["use-token-as-session"]) {
    const token = CODER_SESSION_TOKEN || SLIPWAY_TOKEN;
    if (!token) throw new VerbFailure("--use-token-as-session needs a token in SLIPWAY_TOKEN or CODER_SESSION_TOKEN");
    return client.withToken(token);
  }
  if (has["token-stdin"]) return client.withToken(toSecret(await readAllInput(streams), "token"));
  if (has["password-stdin"]) {
    return client.signIn(
      value.email ?? "",
      toSecret(await readAllInput(streams), "password"),
      toCodeSource(value.code),
    );
  }
  if (!streams.inputIsTerminal) {
    throw new VerbFailure("no terminal for prompts: use --token-stdin, or --email EMAIL --password-stdin");
  }
  await using prompter = new Prompter(streams, input.printError);
  const email =
    value.email ?? (await prompter.promptLine(`Email (empty: paste a token from ${client.url.origin}/cli-auth): `));
  if (email === "") return client.withToken(toSecret(await prompter.promptSecret("Token: "), "token"));
  const promptForCode = () => prompter.promptLine("Code from your authenticator app, or a recovery code: ");
  const password = toSecret(await prompter.promptSecret("Password: "), "password");
  // Awaited here, because the terminal is needed until the code has been typed.
  return await client.signIn(email, password, toCodeSource(value.code) ?? promptForCode);
};

/** A code is valid once and for a minute, so passing it as an argument exposes nothing useful. */
const toCodeSource = (code: string | undefined) => (code === undefined ? undefined : async () => code);

const toSecret = (text: string, name: string): string => {
  if (text !== "") return name === "token" ? text.trim() : text;
  throw new VerbFailure(`the ${name} is empty`);
};

const isThisMachine = (host: string): boolean => host === "localhost" || host === "[::1]" || host.startsWith("127.");
