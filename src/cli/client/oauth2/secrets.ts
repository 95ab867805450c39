// `slipway oauth2 apps secrets APP [--create] [--delete SECRET]...`: the client secrets of an application.
import type { OAuth2Secret } from "#schema/oauth2/app.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { formatTable } from "../../options.ts";
import { formatRelative } from "../../text.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectApp, toAppPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { lists: ["delete"], switches: ["create"] });
  const findApp = selectApp(input, words);
  return withServer("oauth2 apps secrets", input, value, async ({ client }) => {
    const path = `${toAppPath(await findApp(client))}/secrets` as const;
    const before = await client.get(path);
    // All names are resolved before the first secret is deleted.
    const ids = list.delete.map((text) => getSecret(before, text).id);
    const created = has.create ? await client.post(path) : undefined;
    for (const id of ids) await client.delete(`${path}/${id}`);
    if (created) input.print(has.json ? JSON.stringify(created) : created.client_secret_full);
    else printSecrets(input, await client.get(path), has.json);
  });
};

const printSecrets = (input: VerbInput, secrets: readonly OAuth2Secret[], isJson: boolean): void => {
  const now = input.clock.now();
  const rows = secrets.map((one) => [
    one.id,
    `…${one.client_secret_truncated}`,
    formatRelative(one.created_at, now),
    one.last_used_at === null ? "never" : formatRelative(one.last_used_at, now),
  ]);
  if (isJson) input.print(JSON.stringify(secrets));
  else if (rows.length === 0) input.print("No secrets. Create one with --create.");
  else input.print(formatTable(["ID", "ENDS IN", "CREATED", "USED"], rows));
};

/** Finds a secret by its ID or last characters. Throws VerbFailure. */
const getSecret = (secrets: readonly OAuth2Secret[], text: string): OAuth2Secret => {
  const found = secrets.find((one) => one.id === text.toLowerCase() || one.client_secret_truncated === text);
  if (!found) throw new VerbFailure(`the application has no secret ${text}`);
  return found;
};
