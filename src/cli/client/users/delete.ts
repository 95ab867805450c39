// `slipway users delete USER [--yes]`: deletes a user after confirmation.
import { readArguments } from "../../arguments.ts";
import { confirmable, confirmByName } from "../../asked.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { userAsked, userPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const named = userAsked(input, words);
  confirmable(input, has.yes);
  return withServer("users delete", input, value, async ({ client }) => {
    const user = await named(client);
    const who = [user.username, ...(user.email === "" ? [] : [`(${plain(user.email)})`])].join(" ");
    if (!has.yes) await confirmByName(input, user.username, `This permanently deletes the user ${who}.`);
    await client.delete(userPath(user.id));
    input.print(has.json ? JSON.stringify(user) : `${user.username} is deleted.`);
    return EXIT.ok;
  });
};
