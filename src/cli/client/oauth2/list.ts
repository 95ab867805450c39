// `slipway oauth2 apps list`: the OAuth applications that may request access.
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { APPS_PATH } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("oauth2 apps list", input, value, async ({ client }) => {
    const apps = await client.get(APPS_PATH);
    const now = input.clock.now();
    const rows = apps.map((app) => [
      toPlainLine(app.name),
      app.id,
      app.self_registered ? "self-registered" : "created here",
      toPlainLine(app.redirect_uris.join(" ")),
      formatRelative(app.updated_at, now),
    ]);
    if (has.json) input.print(JSON.stringify(apps));
    else if (rows.length === 0) input.print("No applications. Create one with `slipway oauth2 apps create NAME`.");
    else input.print(formatTable(["APPLICATION", "CLIENT ID", "ORIGIN", "REDIRECTS TO", "USED"], rows));
  });
};
