// `slipway workspaces restore WORKSPACE [--as NAME]`: restores a deleted workspace from the trash.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild } from "./build.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["as"], switches: ["no-wait"] });
  const [wanted, ...more] = words;
  if (wanted === undefined || more.length > 0) throw usageError("workspaces restore", "expected a workspace");
  return withServer("workspaces restore", input, value, async (remote) => {
    const { client } = remote;
    const { workspaces } = await client.get("/api/v2/workspaces/trash");
    // If several have the same name, the most recently deleted one is used.
    const found = workspaces.find(
      ({ id, name, owner_name }) => [id, name, `${owner_name}/${name}`].includes(wanted) || id.startsWith(wanted),
    );
    if (!found) {
      throw new VerbFailure(
        `No workspace ${toPlainLine(wanted)} is in the trash. \`slipway trash list\` lists deleted workspaces.`,
      );
    }
    const body = value.as === undefined ? {} : { name: value.as };
    const build = await client.post(`/api/v2/workspaces/${found.id}/restore`, body);
    const workspace = await client.get(`/api/v2/workspaces/${found.id}`);
    const done = `is restored. Start it with: slipway start ${toPlainLine(workspace.name)}`;
    // The build is a stop: a restored workspace is stopped.
    return finishBuild(input, remote, workspace, build, Object.assign({ texts: { doing: "restoring", done } }, has));
  });
};
