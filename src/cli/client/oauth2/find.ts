// Applications by the names that people give them, for every verb that works on one.
import type { OAuth2App } from "#schema/oauth2/app.ts";
import type { Client } from "#src/client.ts";
import { oneWord, orAsked } from "../../asked.ts";
import { VerbFailure } from "../../failure.ts";
import { plain } from "../../text.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

export const APPS_PATH = "/api/v2/oauth2-provider/apps";
/** Where the API has an application. */
export const appPath = ({ id }: Pick<OAuth2App, "id">) => `${APPS_PATH}/${id}` as const;

/** The application of a client id, or of a name that only one has. Throws VerbFailure. */
const appNamed = async (apps: readonly OAuth2App[], name: string): Promise<OAuth2App> => {
  const wanted = name.toLowerCase();
  const found = apps.find(({ id }) => id === wanted);
  if (found) return found;
  const [one, ...more] = apps.filter((app) => app.name.toLowerCase() === wanted);
  // Programs that registered themselves choose their names, also those of others.
  if (more.length > 0) throw new VerbFailure(`several applications are named ${name}; use its client ID`);
  if (!one) throw await unknownName("application", name, () => apps.map((app) => app.name), "slipway oauth2 apps list");
  return one;
};

/** The application that the words name, or that is asked for at a terminal. Throws UsageError before anything is sent. */
export const appAsked = (input: VerbInput, words: readonly string[]): ((client: Client) => Promise<OAuth2App>) => {
  const word = oneWord(input, words, "the application, by its name or client ID");
  return async (client) => {
    const apps = await client.get(APPS_PATH);
    return appNamed(apps, await orAsked(input, word, "Application", async () => apps.map(({ name }) => name)));
  };
};

/** What the options of `create` and `edit` set. */
export const VALUES = ["callback-url", "icon"] as const;
export const LISTS = ["redirect-uri", "scope"] as const;
type Given = {
  readonly value: Readonly<Partial<Record<(typeof VALUES)[number], string>>>;
  readonly list: Readonly<Record<(typeof LISTS)[number], readonly string[]>>;
};

/** The members of a request that the options stand for. */
export const toAppFields = ({ value: { icon }, list }: Given) => ({
  ...(icon === undefined ? {} : { icon: icon === "none" ? "" : icon }),
  ...(list["redirect-uri"].length === 0 ? {} : { redirect_uris: [...list["redirect-uri"]] }),
  // An application that may ask for anything has no list of what it may.
  ...(list.scope.length === 0 ? {} : { scopes: list.scope.includes("all") ? [] : [...list.scope] }),
});

/** For people: one row for each fact. */
export const described = (app: OAuth2App): string => {
  const rows: [string, string][] = [
    ["Application", app.name],
    ["Client ID", app.id],
    ["Redirects to", app.redirect_uris.join(" ")],
    ["Scopes", app.scopes.join(", ") || "anything"],
    ["Auth method", app.token_endpoint_auth_method],
    ["Authorize URL", app.endpoints.authorization],
    ["Token URL", app.endpoints.token],
  ];
  return rows.map(([head, text]) => `${head.padEnd(13)}  ${plain(text)}`).join("\n");
};
