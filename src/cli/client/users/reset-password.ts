// `slipway users reset-password USER`: sets a password and revokes the user's sessions and tokens. Changing one's own requires the current
// password.
import { readArguments } from "../../arguments.ts";
import { Prompter } from "../../ask.ts";
import { VerbFailure } from "../../failure.ts";
import { canPrompt } from "../../missing-arguments.ts";
import { readPassword } from "../../password.ts";
import { getStreams } from "../../streams.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectUser, toUserPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["password-file"] });
  const findUser = selectUser(input, words);
  const { password, isGenerated } = readPassword(value["password-file"], input);
  return withServer("users reset-password", input, value, async ({ client }) => {
    const { id, username } = await findUser(client);
    const me = await client.get("/api/v2/users/me");
    const old_password = me.id === id ? await promptForPassword(input) : undefined;
    await client.put(`${toUserPath(id)}/password`, {
      password,
      ...(old_password === undefined ? {} : { old_password }),
    });
    if (has.json) input.print(JSON.stringify({ id, username, ...(isGenerated ? { password } : {}) }));
    else {
      const endedSessions = me.id === id ? "all other sign-ins and tokens" : "all sign-ins and tokens";
      input.print(
        `The password of ${username} is set; ${endedSessions} were revoked.${isGenerated ? ` New password: ${password}` : ""}`,
      );
    }
  });
};

const promptForPassword = async (input: VerbInput): Promise<string> => {
  if (!canPrompt(input))
    throw new VerbFailure("change your own password at a terminal, where you can enter the current one");
  await using prompter = new Prompter(getStreams(input), input.printError);
  return await prompter.promptSecret("Your current password: ");
};
