// `slipway snapshots list WORKSPACE`: the snapshots of a workspace, newest first.
import { formatSize } from "#base/format-size.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { listSnapshots } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findWorkspace = selectWorkspace(input, words);
  return withServer("snapshots list", input, value, async ({ client }) => {
    const found = await listSnapshots(client, await findWorkspace(client));
    input.print(has.json ? JSON.stringify(found) : formatSnapshots(found));
  });
};

const formatSnapshots = ({ snapshots, unsupported }: Snapshots): string =>
  snapshots.length === 0
    ? unsupported || "No snapshots."
    : formatTable(
        ["ID", "NAME", "STATUS", "CREATED", "SIZE"],
        snapshots.map((one) => [
          one.id.slice(0, 8),
          toPlainLine(one.name || (one.reason === "stop" ? "(on stop)" : "")),
          one.status,
          one.created_at,
          one.status === "ready" && one.method !== "module" ? formatSize(one.bytes) : "",
        ]),
      );
