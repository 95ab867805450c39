// `slipway users reset-factors USER`: removes a lost second factor and ends the user's sessions.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectUser, toUserPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findUser = selectUser(input, words);
  return withServer("users reset-factors", input, value, async ({ client }) => {
    const { id, username } = await findUser(client);
    await client.delete(`${toUserPath(id)}/factors`);
    input.print(has.json ? JSON.stringify({ id, username }) : `${username} can now sign in with only the password.`);
  });
};
