// Templates by name, for the verbs that take one.
import type { Template } from "#schema/template.ts";
import type { Client } from "#src/client.ts";
import { canAsk, orAsked } from "../../asked.ts";
import { VerbFailure } from "../../failure.ts";
import { plain } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";

const NO_TEMPLATE =
  "there is no template yet. One of containers comes by itself once the server reaches a Docker Engine (setting docker_host; `slipway doctor` says whether it does); `slipway templates push FOLDER` makes one of your own";

/** The template of that name; who sits at a terminal is asked which where there are several. */
export const templateAsked = async (input: VerbInput, client: Client, name: string | undefined): Promise<Template> => {
  const names = name === undefined && canAsk(input) ? await templateNames(client) : [];
  const isOpen = names.length > 1;
  return templateNamed(client, isOpen ? await orAsked(input, undefined, "Template", async () => names) : name);
};

export const templateNames = async (client: Client): Promise<string[]> =>
  (await client.get<Template[]>("/api/v2/templates")).map((one) => one.name);

/** The template of that name; without a name the only one there is. Throws VerbFailure that names those there are. */
export const templateNamed = async (client: Client, name: string | undefined): Promise<Template> => {
  const templates = await client.get<Template[]>("/api/v2/templates");
  const known = templates.map((one) => plain(one.name)).join(", ");
  const fitting = name === undefined ? templates : templates.filter((one) => one.name === name);
  const [first, ...more] = fitting;
  if (templates.length === 0) throw new VerbFailure(NO_TEMPLATE);
  if (!first) throw new VerbFailure(`there is no template ${name}; there are ${known}`);
  if (more.length > 0 && name === undefined) throw new VerbFailure(`say which template: --template, one of ${known}`);
  if (more.length > 0) throw new VerbFailure(`several organizations have a template ${name}`);
  return first;
};
