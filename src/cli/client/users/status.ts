// `slipway users suspend USER` and `activate USER`: disables or enables a user's sign-in.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectUser, toUserPath } from "./find.ts";

const createVerb =
  (status: "suspend" | "activate"): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv);
    const findUser = selectUser(input, words);
    return withServer(`users ${status}`, input, value, async ({ client }) => {
      const { id } = await findUser(client);
      const user = await client.put(`${toUserPath(id)}/status/${status}`);
      input.print(has.json ? JSON.stringify(user) : `${user.username} is ${user.status}.`);
    });
  };

export const suspend = createVerb("suspend");
export const activate = createVerb("activate");
