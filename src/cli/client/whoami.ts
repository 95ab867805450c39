// `slipway whoami`: the signed-in user and the server's address.
import { readArguments, requireNoWords } from "../arguments.ts";
import { toPlainLine } from "../text.ts";
import type { RunVerb } from "../verb.ts";
import { withServer } from "./remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("whoami", input, value, async ({ client }) => {
    const { id, username, email, roles } = await client.get("/api/v2/users/me", input);
    const names = roles.map(({ name }) => name);
    if (has.json) input.print(JSON.stringify({ url: client.url.href, id, username, email, roles: names }));
    else {
      const extra = names.length > 0 ? `, ${names.join(", ")}` : "";
      input.print(`${toPlainLine(username)} (${toPlainLine(email)}${extra}) at ${client.url.origin}`);
    }
  });
};
