// `slipway templates versions TEMPLATE [--archived]`: the versions of a template, newest first.
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { listVersions, templateWanted } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["archived"] });
  const named = templateWanted(input, words);
  return withServer("templates versions", input, value, async ({ client }) => {
    const template = await named(client);
    const versions = await listVersions(client, template, has.archived);
    const now = input.clock.now();
    const stateOf = ({ id, archived, job }: TemplateVersion): string =>
      [job.status, ...(id === template.active_version_id ? ["active"] : []), ...(archived ? ["archived"] : [])].join(
        ", ",
      );
    const rows = versions.map((one) => [
      plain(one.name),
      stateOf(one),
      plain(one.created_by.username),
      relative(one.created_at, now),
      Bun.sliceAnsi(plain(one.message), 0, 60, { ellipsis: "…" }),
    ]);
    input.print(has.json ? JSON.stringify(versions) : asTable(["VERSION", "STATUS", "BY", "MADE", "MESSAGE"], rows));
    return EXIT.ok;
  });
};
