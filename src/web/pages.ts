// The pages for people, by path. Bun bundles each with its script and style; src/api/http/pages.ts serves them.
import cliAuth from "./cli-auth.html";
import externalAuth from "./external-auth.html";
import externalAuthLink from "./external-auth-link.html";
import home from "./home.html";
import login from "./login.html";
import security from "./security.html";
import setup from "./setup.html";
import tokens from "./tokens.html";

export const PAGES = {
  "/": home,
  "/login": login,
  "/setup": setup,
  "/settings/security": security,
  "/settings/tokens": tokens,
  "/settings/external-auth": externalAuth,
  "/external-auth/:provider": externalAuthLink,
  "/external-auth/:provider/callback": externalAuthLink,
  "/cli-auth": cliAuth,
} as const;
