// `slipway snapshots create WORKSPACE [--name TEXT]`: copies the workspace's files and waits for the result.
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "../workspaces/find.ts";
import { waitForSnapshot } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["name"], switches: ["no-wait"] });
  const findWorkspace = selectWorkspace(input, words);
  return withServer("snapshots create", input, value, async ({ client }) => {
    const workspace = await findWorkspace(client);
    const body = value.name === undefined ? {} : { name: value.name };
    const created = await client.post(`/api/v2/workspaces/${workspace.id}/snapshots`, body);
    const snapshot = has["no-wait"] ? created : await waitForSnapshot(client, workspace, created);
    if (snapshot.status === "failed") throw new VerbFailure(`The snapshot failed: ${toPlainLine(snapshot.error)}`);
    const state = snapshot.status === "ready" ? "is ready" : "is being created";
    input.print(has.json ? JSON.stringify(snapshot) : `Snapshot ${snapshot.id.slice(0, 8)} ${state}.`);
  });
};
