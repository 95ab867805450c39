// `slipway users delete USER [--yes]`: deletes a user after confirmation.
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectUser, toUserPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const findUser = selectUser(input, words);
  requireConfirmable(input, has.yes);
  return withServer("users delete", input, value, async ({ client }) => {
    const user = await findUser(client);
    const userText = [user.username, ...(user.email === "" ? [] : [`(${toPlainLine(user.email)})`])].join(" ");
    if (!has.yes) await confirmByName(input, user.username, `This permanently deletes the user ${userText}.`);
    await client.delete(toUserPath(user.id));
    input.print(has.json ? JSON.stringify(user) : `${user.username} is deleted.`);
  });
};
