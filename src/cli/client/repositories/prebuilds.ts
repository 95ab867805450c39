// `slipway repositories list|add|build|remove`: repositories whose images are built ahead.
import { usageError } from "#base/usage-error.ts";
import type { CreatedRepositoryPrebuild, RepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import type { Client } from "#src/client.ts";
import { noWords, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { asTable } from "../../options.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/repositories/prebuilds";

export const list: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("repositories list", input, value, async ({ client }) => {
    const all = await client.get<RepositoryPrebuild[]>(PATH);
    input.print(has.json ? JSON.stringify(all) : shown(all));
    return EXIT.ok;
  });
};

export const add: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["every", "keep"] });
  const url = oneWord(words, "a link to a repository");
  const body = {
    url,
    ...(value.every === undefined ? {} : { interval_hours: whole("--every", value.every) }),
    ...(value.keep === undefined ? {} : { keep: whole("--keep", value.keep) }),
  };
  return withServer("repositories add", input, value, async ({ client }) => {
    const made = await client.post<CreatedRepositoryPrebuild>(PATH, body);
    const { prebuild, secret } = made;
    const lines = [
      `The image of ${plain(prebuild.url)} is being built.`,
      `Webhook: ${prebuild.webhook_url}`,
      `Secret, shown only now: ${secret}`,
    ];
    input.print(has.json ? JSON.stringify(made) : lines.join("\n"));
    return EXIT.ok;
  });
};

export const build: RunVerb = (input) =>
  onOne(input, "build", async (client, { id, url }) => {
    await client.post(`${PATH}/${id}/build`);
    return `Looking for a new commit of ${plain(url)}.`;
  });

export const remove: RunVerb = (input) =>
  onOne(input, "remove", async (client, { id, url }) => {
    await client.delete(`${PATH}/${id}`);
    return `Images of ${plain(url)} are no longer built ahead.`;
  });

const onOne = (
  input: Parameters<RunVerb>[0],
  verb: string,
  act: (client: Client, found: RepositoryPrebuild) => Promise<string>,
): Promise<number> => {
  const { words, value, has } = readArguments(input.argv);
  const wanted = oneWord(words, "a repository");
  return withServer(`repositories ${verb}`, input, value, async ({ client }) => {
    const found = named(await client.get<RepositoryPrebuild[]>(PATH), wanted);
    const said = await act(client, found);
    input.print(has.json ? JSON.stringify(found) : said);
    return EXIT.ok;
  });
};

const oneWord = (words: readonly string[], what: string): string => {
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw usageError("repositories", `expected ${what}`);
  return word;
};

const whole = (flag: string, text: string): number => {
  if (!/^\d{1,4}$/.test(text)) throw usageError(flag, "expected a whole number");
  return Number(text);
};

const named = (all: readonly RepositoryPrebuild[], wanted: string): RepositoryPrebuild => {
  const [first, second] = all.filter(({ id, url, name }) => [id, url, name].includes(wanted));
  const where = "`slipway repositories list` shows them.";
  if (!first) throw new VerbFailure(`No images of ${plain(wanted)} are built ahead. ${where}`);
  if (second) throw new VerbFailure(`${plain(wanted)} names several repositories; use the link. ${where}`);
  return first;
};

const shown = (all: readonly RepositoryPrebuild[]): string =>
  all.length === 0
    ? "No images are built ahead. `slipway repositories add LINK` adds a repository."
    : asTable(
        ["REPOSITORY", "STATUS", "COMMIT", "BUILT", "ADDED BY"],
        all.map((one) => [
          plain(one.url),
          one.status === "failed" ? `failed: ${plain(one.error)}` : one.status,
          one.commit.slice(0, 12),
          one.built_at ?? "",
          plain(one.owner_name),
        ]),
      );
