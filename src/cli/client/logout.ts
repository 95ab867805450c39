// `slipway logout`: ends the stored session, locally and at its server. A pasted API token is only removed locally, because other programs
// may use it.
import { Client } from "#src/client.ts";
import { readArguments, requireNoWords } from "../arguments.ts";
import { toPlainLine } from "../text.ts";
import type { RunVerb, VerbInput } from "../verb.ts";
import { explainError } from "./remote.ts";
import { deleteSession, readSession, type Session } from "./session.ts";

export const run: RunVerb = async (input) => {
  // Accepts --yes for programs, although there is no confirmation.
  const { words, has } = readArguments(input.argv, { switches: ["yes"], short: { y: "yes" } });
  requireNoWords(words);
  return explainError("logout", input, async () => {
    const session = readSession(input);
    if (!session) {
      input.print(has.json ? JSON.stringify({ ended: false }) : "Not signed in.");
      return;
    }
    const problem = await signOutAtServer(session, input).catch((error: Error) => error.message);
    // The local session is removed even if the server fails.
    deleteSession(input);
    if (problem !== undefined)
      input.printError(`Could not revoke the session on the server: ${toPlainLine(problem)}\n`);
    const { url, username } = session;
    input.print(has.json ? JSON.stringify({ ended: true, url, username }) : `Signed out of ${new URL(url).origin}.`);
  });
};

/** Ends the session at the server. Returns what failed; undefined if nothing is left to end. */
const signOutAtServer = async (
  { url, token }: Session,
  { signal, headers }: VerbInput,
): Promise<string | undefined> => {
  const client = new Client(url, token, headers);
  const [id = ""] = token.split("-");
  const key = await client.fetch("GET", `/api/v2/users/me/keys/${encodeURIComponent(id)}`, undefined, { signal });
  if (key.status === 401) return undefined;
  const { login_type } = (await key.json()) as { login_type?: string };
  if (login_type === "token") return undefined;
  await client.post("/api/v2/users/logout", undefined, { signal });
  return undefined;
};
