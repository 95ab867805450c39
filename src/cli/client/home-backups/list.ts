// `slipway home-backups list WORKSPACE`: the home backups of a workspace, newest first.
import type { HomeBackups } from "#schema/workspaces/home-backup.ts";
import { readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, size } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { workspaceAsked } from "../workspaces/find.ts";
import { listHomeBackups } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const named = workspaceAsked(input, words);
  return withServer("home-backups list", input, value, async ({ client }) => {
    const found = await listHomeBackups(client, await named(client));
    input.print(has.json ? JSON.stringify(found) : shown(found));
    return EXIT.ok;
  });
};

const shown = ({ backups, unsupported }: HomeBackups): string =>
  backups.length === 0
    ? unsupported || "No home backups."
    : asTable(
        ["ID", "STATUS", "CREATED", "SIZE", "NEW", "VERIFIED", "PROBLEM"],
        backups.map((one) => [
          one.id.slice(0, 8),
          one.status,
          one.created_at,
          one.status === "ready" ? size(one.bytes) : "",
          one.status === "ready" ? size(one.added_bytes) : "",
          one.verified_at ?? "",
          plain(one.error),
        ]),
      );
