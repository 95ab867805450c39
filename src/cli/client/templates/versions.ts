// `slipway templates versions TEMPLATE [--archived]`: the versions of a template, newest first.
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { listVersions, selectTemplate } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["archived"] });
  const findTemplate = selectTemplate(input, words);
  return withServer("templates versions", input, value, async ({ client }) => {
    const template = await findTemplate(client);
    const versions = await listVersions(client, template, has.archived);
    const now = input.clock.now();
    const formatState = ({ id, archived, job }: TemplateVersion): string =>
      [job.status, ...(id === template.active_version_id ? ["active"] : []), ...(archived ? ["archived"] : [])].join(
        ", ",
      );
    const rows = versions.map((one) => [
      toPlainLine(one.name),
      formatState(one),
      toPlainLine(one.created_by.username),
      formatRelative(one.created_at, now),
      Bun.sliceAnsi(toPlainLine(one.message), 0, 60, { ellipsis: "…" }),
    ]);
    input.print(
      has.json ? JSON.stringify(versions) : formatTable(["VERSION", "STATUS", "BY", "CREATED", "MESSAGE"], rows),
    );
  });
};
