// The setting external_auth: its forms in the file and as JSON, the defaults of each provider type, and errors without secrets.
import { expect, test } from "bun:test";
import { describeSettings } from "#base/config/describe.ts";
import type { ProviderSetting } from "#base/config/external-auth-settings.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { type Config, loadConfig } from "#base/config.ts";
import { UsageError } from "#base/usage-error.ts";
import { authorizeUrl } from "#src/git/oauth.ts";
import { toProvider } from "#src/git/provider.ts";

const load = (env: Record<string, string>, file = "") =>
  loadConfig({ argv: file ? ["--config=s.yaml"] : [], env, readFile: () => file });
const loadProviders = (list: unknown): Config => load({ SLIPWAY_EXTERNAL_AUTH: JSON.stringify(list) }).config;
const getProblems = (list: unknown): string => {
  try {
    loadProviders(list);
  } catch (error) {
    if (error instanceof UsageError) return JSON.stringify(error.problems);
    throw error;
  }
  return "";
};

const HUB = { id: "hub", type: "github", client_id: "abc", client_secret: "hush-hush" } as const;

test("[EA-4] reads providers from the settings file or from JSON, and hides their values in listings", () => {
  const yaml = "external_auth:\n  - id: hub\n    type: github\n    client_id: abc\n    client_secret: hush-hush\n";
  const loaded = load({}, yaml);
  expect(loaded.config.external_auth).toEqual([HUB]);
  expect(loadProviders([HUB]).external_auth).toEqual([HUB]);
  const described = describeSettings(SERVER_SETTINGS, loaded).find(({ key }) => key === "external_auth");
  expect(described).toMatchObject({ value: "(hidden)", from: "file" });
  expect(load({}).config.external_auth).toEqual([]);
});

test.each([
  [{ id: "hub" }, "not a list"],
  [["hub"], "entry 1 must be a mapping"],
  [[HUB, { ...HUB, id: "Two" }], "entry 2 needs an id"],
  [[{ ...HUB, type: "svn" }], "needs a type"],
  [[{ ...HUB, client_id: "" }], "needs a client_id"],
  [[{ ...HUB, secret: "x" }], "has the unknown key secret"],
  [[{ ...HUB, auth_url: "javascript:alert(1)" }], "auth_url must be"],
  [[{ ...HUB, token_url: "https://user:hush-hush@h/" }], "token_url must be"],
  [[{ ...HUB, scopes: "repo" }], "scopes must be"],
  [[{ ...HUB, regex: "(" }], "regex must be"],
  [[{ ...HUB, device_flow: "yes" }], "device_flow must be"],
  [[HUB, HUB], "two entries have the id hub"],
  [[{ ...HUB, type: "generic" }], "needs auth_url"],
  [[{ ...HUB, type: "bitbucket-server" }], "needs base_url"],
  [[{ ...HUB, type: "gitea", device_flow: true }], "needs device_code_url"],
])("[EA-4] reports an invalid setting without its value: %j", (list, expected) => {
  const text = getProblems(list);
  expect(text).toContain(expected);
  expect(text).not.toContain("hush-hush");
});

const createProvider = (overrides: Partial<ProviderSetting>) => toProvider({ ...HUB, ...overrides } as ProviderSetting);

test("[EA-4] each type has default URLs for the public service and for a self-hosted server", () => {
  const selfHosted = "https://git.corp.example/base/";
  const listUrls = (overrides: Partial<ProviderSetting>) => {
    const { auth_url, token_url, validate_url, revocation } = createProvider(overrides);
    return [auth_url, token_url, validate_url, revocation?.url].map((url) => url?.href ?? "-");
  };
  expect(listUrls({})).toEqual([
    "https://github.com/login/oauth/authorize",
    "https://github.com/login/oauth/access_token",
    "https://api.github.com/user",
    "https://api.github.com/applications/abc/token",
  ]);
  expect(listUrls({ base_url: selfHosted })).toEqual([
    "https://git.corp.example/base/login/oauth/authorize",
    "https://git.corp.example/base/login/oauth/access_token",
    "https://git.corp.example/base/api/v3/user",
    "https://git.corp.example/base/api/v3/applications/abc/token",
  ]);
  expect(listUrls({ type: "gitlab", token_url: "https://else.example/t" })).toEqual([
    "https://gitlab.com/oauth/authorize",
    "https://else.example/t",
    "https://gitlab.com/oauth/token/info",
    "https://gitlab.com/oauth/revoke",
  ]);
  expect(listUrls({ type: "bitbucket-cloud" })[2]).toBe("https://api.bitbucket.org/2.0/user");
  expect(listUrls({ type: "gitea", base_url: "https://codeberg.org" })[0]).toBe(
    "https://codeberg.org/login/oauth/authorize",
  );
  expect(
    createProvider({ type: "gitea", base_url: "https://codeberg.org:8443" }).pattern?.test(
      "https://codeberg.org:8443/a",
    ),
  ).toBe(true);
  expect(createProvider({ type: "gitea" }).pattern?.test("https://giteaXcom/a")).toBe(false);
  expect(createProvider({ type: "gitea", base_url: "http://gitea.lan" }).pattern?.test("http://gitea.lan/a")).toBe(
    true,
  );
});

test("[EA-5] the authorization URL keeps its query and has the challenge, but no verifier or secret", () => {
  const provider = createProvider({ auth_url: "https://h.example/a?tenant=7", scopes: ["a b", "c"] });
  const redirect = new URL("https://slipway.example/external-auth/hub/callback");
  const url = authorizeUrl(provider, {
    redirect,
    state: "s&t",
    verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
  });
  expect(Object.fromEntries(url.searchParams)).toEqual({
    tenant: "7",
    response_type: "code",
    client_id: "abc",
    redirect_uri: redirect.href,
    state: "s&t",
    scope: "a b c",
    // The example of RFC 7636, appendix B.
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
});
