// `slipway repositories list|add|build|remove`: repositories whose images are built in advance.
import { usageError } from "#base/usage-error.ts";
import type { CreatedRepositoryPrebuild, RepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import type { Client } from "#src/client.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/repositories/prebuilds";

export const list: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("repositories list", input, value, async ({ client }) => {
    const prebuilds = await client.get<RepositoryPrebuild[]>(PATH);
    input.print(has.json ? JSON.stringify(prebuilds) : formatPrebuilds(prebuilds));
  });
};

export const add: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["every", "keep"] });
  const url = requireOneWord(words, "a link to a repository");
  const body = {
    url,
    ...(value.every === undefined ? {} : { interval_hours: parseInteger("--every", value.every) }),
    ...(value.keep === undefined ? {} : { keep: parseInteger("--keep", value.keep) }),
  };
  return withServer("repositories add", input, value, async ({ client }) => {
    const created = await client.post<CreatedRepositoryPrebuild>(PATH, body);
    const { prebuild, secret } = created;
    const lines = [
      `Building the image of ${toPlainLine(prebuild.url)}.`,
      `Webhook: ${prebuild.webhook_url}`,
      `Secret (not shown again): ${secret}`,
    ];
    input.print(has.json ? JSON.stringify(created) : lines.join("\n"));
  });
};

export const build: RunVerb = (input) =>
  withPrebuild(input, "build", async (client, { id, url }) => {
    await client.post(`${PATH}/${id}/build`);
    return `Checking ${toPlainLine(url)} for new commits.`;
  });

export const remove: RunVerb = (input) =>
  withPrebuild(input, "remove", async (client, { id, url }) => {
    await client.delete(`${PATH}/${id}`);
    return `Removed ${toPlainLine(url)}. Its images are no longer built in advance.`;
  });

const withPrebuild = (
  input: Parameters<RunVerb>[0],
  verb: string,
  act: (client: Client, found: RepositoryPrebuild) => Promise<string>,
): Promise<number> => {
  const { words, value, has } = readArguments(input.argv);
  const wanted = requireOneWord(words, "a repository");
  return withServer(`repositories ${verb}`, input, value, async ({ client }) => {
    const found = getPrebuild(await client.get<RepositoryPrebuild[]>(PATH), wanted);
    const message = await act(client, found);
    input.print(has.json ? JSON.stringify(found) : message);
  });
};

const requireOneWord = (words: readonly string[], what: string): string => {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw usageError("repositories", `expected ${what}`);
  return word;
};

const parseInteger = (flag: string, text: string): number => {
  if (!/^\d{1,4}$/.test(text)) throw usageError(flag, "expected a whole number");
  return Number(text);
};

const getPrebuild = (prebuilds: readonly RepositoryPrebuild[], wanted: string): RepositoryPrebuild => {
  const [first, second] = prebuilds.filter(({ id, url, name }) => [id, url, name].includes(wanted));
  const hint = "`slipway repositories list` lists them.";
  if (!first) throw new VerbFailure(`there is no repository prebuild ${toPlainLine(wanted)}. ${hint}`);
  if (second) throw new VerbFailure(`several repositories are named ${toPlainLine(wanted)}; use the link. ${hint}`);
  return first;
};

const formatPrebuilds = (prebuilds: readonly RepositoryPrebuild[]): string =>
  prebuilds.length === 0
    ? "No repository prebuilds. Add one with `slipway repositories add LINK`."
    : formatTable(
        ["REPOSITORY", "STATUS", "COMMIT", "BUILT", "ADDED BY"],
        prebuilds.map((one) => [
          toPlainLine(one.url),
          one.status === "failed" ? `failed: ${toPlainLine(one.error)}` : one.status,
          one.commit.slice(0, 12),
          one.built_at ?? "",
          toPlainLine(one.owner_name),
        ]),
      );
