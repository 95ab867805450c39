// `slipway workspaces favorite WORKSPACE` and `unfavorite`: marks workspaces that come first in the user's lists.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectWorkspace } from "./find.ts";

const createVerb =
  (isFavorite: boolean): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv);
    const findSelected = selectWorkspace(input, words);
    return withServer(`workspaces ${isFavorite ? "favorite" : "unfavorite"}`, input, value, async ({ client }) => {
      const { id } = await findSelected(client);
      const path = `/api/v2/workspaces/${id}` as const;
      await (isFavorite ? client.put(`${path}/favorite`) : client.delete(`${path}/favorite`));
      const workspace = await client.get(path);
      const message = isFavorite ? "is a favorite." : "is not a favorite.";
      input.print(has.json ? JSON.stringify(workspace) : `${workspace.name} ${message}`);
    });
  };

export const favorite = createVerb(true);
export const unfavorite = createVerb(false);
