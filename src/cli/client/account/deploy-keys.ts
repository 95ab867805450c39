// `slipway account deploy-keys list|create|revoke`: keys with which the user's workspaces access single private repositories.

import type { DeployKey } from "#schema/users/deploy-key.ts";
import type { Client } from "#src/client.ts";
import { findDeployKeyLocation, toRepositoryName } from "#src/git/deploy-key.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/users/me/deploy-keys";

export const list: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("account deploy-keys list", input, value, async ({ client }) => {
    const keys = await client.get(PATH);
    const now = input.clock.now();
    const rows = keys.map(({ url, created_at, public_key }) => [
      toPlainLine(url),
      formatRelative(created_at, now),
      public_key,
    ]);
    if (has.json) input.print(JSON.stringify(keys));
    else if (rows.length === 0)
      input.print("No deploy keys. Create one with `slipway account deploy-keys create REPOSITORY`.");
    else input.print(formatTable(["REPOSITORY", "CREATED", "PUBLIC KEY"], rows));
  });
};

export const create: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const word = takeOneWord(input, words, "the repository");
  return withServer("account deploy-keys create", input, value, async ({ client }) => {
    const url = await promptIfMissing(input, word, "Repository");
    const key = await client.post(PATH, { url });
    input.print(has.json ? JSON.stringify(key) : describe(key));
  });
};

export const revoke: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const word = takeOneWord(input, words, "the repository");
  return withServer("account deploy-keys revoke", input, value, async ({ client }) => {
    const key = await find(client, await promptIfMissing(input, word, "Repository"));
    await client.delete(`/api/v2/users/me/deploy-keys/${key.id}`);
    const message = `The deploy key for ${toPlainLine(key.url)} is revoked. Also remove its public key from the repository's settings.`;
    input.print(has.json ? JSON.stringify(key) : message);
  });
};

const find = async (client: Client, link: string): Promise<DeployKey> => {
  const location = findDeployKeyLocation(link);
  const name = location && toRepositoryName(location.url);
  const found = (await client.get(PATH)).find(({ url }) => toRepositoryName(url) === name);
  if (found) return found;
  throw new VerbFailure(`you have no deploy key for ${toPlainLine(link)}; see \`slipway account deploy-keys list\``);
};

const describe = ({ url, public_key, settings_url }: DeployKey): string =>
  [
    public_key,
    "",
    settings_url
      ? `Add this key at ${settings_url}.`
      : `Add this key to the deploy keys in the settings of ${toPlainLine(url)}.`,
    `Give it write access if your workspaces push. Then run \`slipway create --repo ${toPlainLine(url)}\`.`,
  ].join("\n");
