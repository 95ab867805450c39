// Asks the user whether an OAuth application may act for them, and redirects to the application with the answer. Opening the page grants
// nothing.
import type { AuthorizationRequest } from "#schema/oauth2/grant.ts";
import { call, Problem } from "./api.ts";
import { make, requireSession, runBusy, runPage, the } from "./page.ts";
import { isOwnPicture } from "./picture.ts";

const PATH = "/oauth2-provider/authorize";
const KNOWN = [
  ...["client_id", "redirect_uri", "response_type", "response_mode", "scope", "state"],
  ...["code_challenge", "code_challenge_method", "resource"],
];

const showState = (words: string): void => {
  the("about").hidden = false;
  the("state").textContent = words;
};

/** Returns the parameters of the request. Unknown ones are ignored, as the standard requires, and none may be repeated. */
const readParameters = (): Record<string, string> => {
  const query = new URLSearchParams(location.search);
  const given = KNOWN.filter((name) => query.has(name));
  if (given.some((name) => query.getAll(name).length > 1)) throw new Error("The application sent an invalid request.");
  return Object.fromEntries(given.map((name) => [name, query.get(name) ?? ""]));
};

const WORDS: Readonly<Record<string, string>> = {
  all: "Full access to your account, including all workspaces, chats and settings",
  application_connect: "Open the apps of your workspaces",
  "workspace:read": "See your workspaces",
  "workspace:create": "Create workspaces and choose what runs in them",
  "workspace:start": "Start your workspaces",
  "workspace:stop": "Stop your workspaces",
  "workspace:update": "Change your workspaces",
  "workspace:delete": "Delete your workspaces",
  "workspace:share": "Share your workspaces with others",
  "workspace:ssh": "Run programs and read and write files in your workspaces",
  "workspace:application_connect": "Open the apps of your workspaces",
  "workspace:*": "Full access to your workspaces",
  "template:read": "See templates",
  "user:read": "See the users who are visible to you",
  "user:read_personal": "See your settings and Git keys",
  "user:update_personal": "Change your settings and Git keys",
};

/** Formats a scope such as `workspace:read` for display. */
const formatScope = (scope: string): string => {
  const known = WORDS[scope];
  if (known !== undefined) return known;
  const [resource = "", action = ""] = scope.split(":").map((part) => part.replaceAll(/[_.]/g, " "));
  return `${resource.charAt(0).toUpperCase()}${resource.slice(1)}: ${action === "*" ? "everything" : action}`;
};

const show = (request: AuthorizationRequest, username: string): void => {
  const { app, scopes, sends_to } = request;
  the("title").textContent = `Allow access to ${app.name}?`;
  document.title = `Allow ${app.name} · Slipway`;
  the("app").textContent = app.name;
  // A self-registered application could show another one's logo.
  if (!app.self_registered && isOwnPicture(app.icon)) {
    the<HTMLImageElement>("icon").src = app.icon;
    the("icon").hidden = false;
  }
  the("user").textContent = username;
  the("unknown").hidden = !app.self_registered;
  the("place").textContent = sends_to;
  the("scopes").replaceChildren(...scopes.map((scope) => make("li", { title: scope }, formatScope(scope))));
  the("about").hidden = true;
  the("request").hidden = false;
};

/**
 * Handles an invalid request. An application created by an owner is redirected to immediately. Anyone can register an application and lure
 * a user to this page, so no one is redirected to a self-registered one without confirmation (RFC 9700 4.11.2).
 */
const refuse = ({ app, sends_to }: AuthorizationRequest, address: string): void => {
  if (!app.self_registered) {
    showState("The application sent an invalid request and was notified. You can close this page.");
    location.replace(address);
    return;
  }
  showState(
    `An application that calls itself ${app.name} sent an invalid request. Access was not granted. Its address: ${sends_to}.`,
  );
  the("wrong").hidden = false;
  the("back").onclick = () => location.replace(address);
};

/** Sends the answer; the browser is redirected to the application. */
const answer = async (parameters: Record<string, string>, approve: boolean): Promise<void> => {
  const { redirect_to } = await call<{ redirect_to: string }>("POST", PATH, { ...parameters, approve });
  the("request").hidden = true;
  showState(
    approve
      ? "Access granted. Return to the application; you can close this page."
      : "Access denied. You can close this page.",
  );
  location.replace(redirect_to);
};

runPage(async () => {
  const { username } = await requireSession();
  const parameters = readParameters();
  const request = await call<AuthorizationRequest>("GET", `${PATH}?${new URLSearchParams(parameters)}`).catch(
    (error) => {
      showState(
        error instanceof Problem && error.status === 404
          ? "This server doesn't let applications request access. An administrator turns this on with the setting oauth2_provider."
          : "Access was not granted.",
      );
      throw error;
    },
  );
  if (request.error_redirect !== undefined) {
    refuse(request, request.error_redirect);
    return;
  }
  show(request, username);
  const allow = the("allow");
  // An address that ends with the ID would focus the button, so that one key allows access.
  allow.removeAttribute("id");
  allow.onclick = () => void runBusy(allow, () => answer(parameters, true));
  the("refuse").onclick = () => void runBusy(the("refuse"), () => answer(parameters, false));
});
