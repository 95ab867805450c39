// `slipway templates promote|archive|unarchive TEMPLATE VERSION`: sets the active version, and which versions are offered.
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Client } from "#src/client.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getVersion, listVersions, selectTemplate } from "./find.ts";

type VersionVerb = {
  verb: string;
  outcome: string;
  act(client: Client, template: Template, version: TemplateVersion): Promise<unknown>;
};

const createVersionVerb =
  ({ verb, outcome, act }: VersionVerb): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv);
    const [first, second, ...more] = words;
    requireNoWords(more);
    const findTemplate = selectTemplate(input, first === undefined ? [] : [first]);
    const word = takeOneWord(input, second === undefined ? [] : [second], "the version");
    return withServer(`templates ${verb}`, input, value, async ({ client }) => {
      const template = await findTemplate(client);
      const loadNames = async () => (await listVersions(client, template, true)).map(({ name }) => name);
      const { id } = await getVersion(client, template, await promptIfMissing(input, word, "Version", loadNames));
      await act(client, template, await client.get(`/api/v2/templateversions/${id}`));
      const version = await client.get(`/api/v2/templateversions/${id}`);
      input.print(has.json ? JSON.stringify(version) : `${toPlainLine(version.name)} of ${template.name} ${outcome}.`);
    });
  };

export const promote = createVersionVerb({
  verb: "promote",
  outcome: "is the active version",
  act: (client, template, { id }) => client.patch(`/api/v2/templates/${template.id}/versions`, { id }),
});
export const archive = createVersionVerb({
  verb: "archive",
  outcome: "is archived",
  act: (client, _, { id }) => client.post(`/api/v2/templateversions/${id}/archive`),
});
export const unarchive = createVersionVerb({
  verb: "unarchive",
  outcome: "is unarchived",
  act: (client, _, { id }) => client.post(`/api/v2/templateversions/${id}/unarchive`),
});
