// The pages by path, with the file of this folder that is served there. The app renders its own pages at the same paths
// (app/shell/routes.ts). src/api/http/pages.ts serves them.

const APP = "app.html";

export const PAGES: Readonly<Record<string, string>> = {
  "/": APP,
  "/login": APP,
  "/setup": APP,
  "/invite": APP,
  "/workspaces": APP,
  "/workspaces/:workspace": APP,
  "/workspaces/:workspace/:tab": APP,
  "/new": APP,
  "/chats": APP,
  "/chats/:chat": APP,
  "/tasks": APP,
  "/terminals": APP,
  "/terminals/:agent": APP,
  "/templates": APP,
  "/templates/:template": APP,
  "/templates/:template/:tab": APP,
  "/prebuilds": APP,
  "/docs": APP,
  "/docs/:page": APP,
  "/insights": APP,
  "/insights/:tab": APP,
  "/audit": APP,
  "/connections": APP,
  "/trash": APP,
  "/admin": APP,
  "/admin/:tab": APP,
  "/admin/:tab/:item": APP,
  "/account": APP,
  "/account/:tab": APP,
  "/offline": "offline.html",
  "/settings/external-auth": "external-auth.html",
  "/external-auth/:provider": "external-auth-link.html",
  "/external-auth/:provider/callback": "external-auth-link.html",
  "/cli-auth": "cli-auth.html",
  "/open-app": "open-app.html",
  "/oauth2/authorize": "oauth2-authorize.html",
};

/** Files at the root, for installing the app and for offline use. */
export const ROOT_FILES: Readonly<Record<string, string>> = {
  "/sw.js": "sw.js",
  "/manifest.webmanifest": "manifest.webmanifest",
};

/** Former paths of pages, which clients and users may still use; the browser is redirected to the current ones. */
export const REDIRECTS: Readonly<Record<string, string>> = {
  "/settings/tokens": "/account/tokens",
  "/settings/security": "/account/security",
};
