// `slipway home-backups list WORKSPACE`: the home backups of a workspace, newest first.
import { formatSize } from "#base/format-size.ts";
import type { HomeBackups } from "#schema/workspaces/home-backup.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { listHomeBackups } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("home-backups list", input, value, async ({ client }) => {
    const found = await listHomeBackups(client, await findWorkspace(client));
    input.print(has.json ? JSON.stringify(found) : formatHomeBackups(found));
  });
};

const formatHomeBackups = ({ backups, unsupported }: HomeBackups): string =>
  backups.length === 0
    ? unsupported || "No home backups."
    : formatTable(
        ["ID", "STATUS", "CREATED", "SIZE", "NEW", "VERIFIED", "PROBLEM"],
        backups.map((one) => [
          one.id.slice(0, 8),
          one.status,
          one.created_at,
          one.status === "ready" ? formatSize(one.bytes) : "",
          one.status === "ready" ? formatSize(one.added_bytes) : "",
          one.verified_at ?? "",
          toPlainLine(one.error),
        ]),
      );
