// Finds OAuth applications by name, for all commands that work on one.
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { formatFields } from "../../options.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

export const APPS_PATH = "/api/v2/oauth2-provider/apps";
/** The API path of an application. */
export const toAppPath = ({ id }: Pick<OAuth2App, "id">) => `${APPS_PATH}/${id}` as const;

/** Returns the application with this client ID, or with this name if it is unique. Throws VerbFailure. */
const getApp = async (apps: readonly OAuth2App[], name: string): Promise<OAuth2App> => {
  const wanted = name.toLowerCase();
  const found = apps.find(({ id }) => id === wanted);
  if (found) return found;
  const [one, ...more] = apps.filter((app) => app.name.toLowerCase() === wanted);
  // Self-registered applications choose their own names, which may duplicate others.
  if (more.length > 0) throw new VerbFailure(`several applications are named ${name}; use its client ID`);
  if (!one)
    throw await toUnknownNameError("application", name, () => apps.map((app) => app.name), "slipway oauth2 apps list");
  return one;
};

/** Returns the named application, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectApp = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<OAuth2App>) => {
  const word = takeOneWord(input, words, "the application, by its name or client ID");
  return async (client) => {
    const apps = await client.get(APPS_PATH);
    return getApp(apps, await promptIfMissing(input, word, "Application", async () => apps.map(({ name }) => name)));
  };
};

/** The options of `create` and `edit`. */
export const VALUES = ["callback-url", "icon"] as const;
export const LISTS = ["redirect-uri", "scope"] as const;
type AppOptions = {
  readonly value: Readonly<Partial<Record<(typeof VALUES)[number], string>>>;
  readonly list: Readonly<Record<(typeof LISTS)[number], readonly string[]>>;
};

/** Converts the options to request fields. */
export const toAppFields = ({ value: { icon }, list }: AppOptions) => ({
  ...(icon === undefined ? {} : { icon: icon === "none" ? "" : icon }),
  ...(list["redirect-uri"].length === 0 ? {} : { redirect_uris: [...list["redirect-uri"]] }),
  // An application without a list of scopes may request all of them.
  ...(list.scope.length === 0 ? {} : { scopes: list.scope.includes("all") ? [] : [...list.scope] }),
});

/** Formats an application with one row per field. */
export const describeApp = (app: OAuth2App): string =>
  formatFields([
    ["Application", app.name],
    ["Client ID", app.id],
    ["Redirects to", app.redirect_uris.join(" ")],
    ["Scopes", app.scopes.join(", ") || "anything"],
    ["Auth method", app.token_endpoint_auth_method],
    ["Authorize URL", app.endpoints.authorization],
    ["Token URL", app.endpoints.token],
  ]);
