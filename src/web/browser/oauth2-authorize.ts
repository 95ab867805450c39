// Asks the user whether an OAuth application may act for them, and redirects to the application with the answer. Opening the page grants
// nothing.
import type { AuthorizationRequest } from "#schema/oauth2/grant.ts";
import { call, Problem } from "./api.ts";
import { createElement, getElement, requireSession, runBusy, runPage } from "./page.ts";
import { isAllowedPicture } from "./picture.ts";

const PATH = "/oauth2-provider/authorize";
const PARAMETERS = [
  ...["client_id", "redirect_uri", "response_type", "response_mode", "scope", "state"],
  ...["code_challenge", "code_challenge_method", "resource"],
];

const showState = (text: string): void => {
  getElement("about").hidden = false;
  getElement("state").textContent = text;
};

/** Returns the parameters of the request. Unknown ones are ignored, as the standard requires, and none may be repeated. */
const readParameters = (): Record<string, string> => {
  const query = new URLSearchParams(location.search);
  const present = PARAMETERS.filter((name) => query.has(name));
  if (present.some((name) => query.getAll(name).length > 1))
    throw new Error("The application sent an invalid request.");
  return Object.fromEntries(present.map((name) => [name, query.get(name) ?? ""]));
};

const SCOPE_TEXTS: Readonly<Record<string, string>> = {
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
  const text = SCOPE_TEXTS[scope];
  if (text !== undefined) return text;
  const [resource = "", action = ""] = scope.split(":").map((part) => part.replaceAll(/[_.]/g, " "));
  return `${resource.charAt(0).toUpperCase()}${resource.slice(1)}: ${action === "*" ? "everything" : action}`;
};

const showRequest = (request: AuthorizationRequest, username: string): void => {
  const { app, scopes, sends_to } = request;
  getElement("title").textContent = `Allow access to ${app.name}?`;
  document.title = `Allow ${app.name} · Slipway`;
  getElement("app").textContent = app.name;
  // A self-registered application could show the logo of another application.
  if (!app.self_registered && isAllowedPicture(app.icon)) {
    getElement<HTMLImageElement>("icon").src = app.icon;
    getElement("icon").hidden = false;
  }
  getElement("user").textContent = username;
  getElement("unknown").hidden = !app.self_registered;
  getElement("place").textContent = sends_to;
  getElement("scopes").replaceChildren(
    ...scopes.map((scope) => createElement("li", { title: scope }, formatScope(scope))),
  );
  getElement("about").hidden = true;
  getElement("request").hidden = false;
};

/**
 * Handles an invalid request. An application created by an owner is redirected to immediately. Anyone can register an application and lure
 * a user to this page, so no one is redirected to a self-registered one without confirmation (RFC 9700 4.11.2).
 */
const handleInvalidRequest = ({ app, sends_to }: AuthorizationRequest, address: string): void => {
  if (!app.self_registered) {
    showState("The application sent an invalid request and was notified. You can close this page.");
    location.replace(address);
    return;
  }
  showState(
    `An application that calls itself ${app.name} sent an invalid request. Access was not granted. Its address: ${sends_to}.`,
  );
  getElement("wrong").hidden = false;
  getElement("back").onclick = () => location.replace(address);
};

/** Sends the answer; the browser is redirected to the application. */
const sendAnswer = async (parameters: Record<string, string>, approve: boolean): Promise<void> => {
  const { redirect_to } = await call<{ redirect_to: string }>("POST", PATH, { ...parameters, approve });
  getElement("request").hidden = true;
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
    handleInvalidRequest(request, request.error_redirect);
    return;
  }
  showRequest(request, username);
  const allowButton = getElement("allow");
  // An address that ends with the ID would focus the button, so that one key allows access.
  allowButton.removeAttribute("id");
  allowButton.onclick = () => void runBusy(allowButton, () => sendAnswer(parameters, true));
  getElement("refuse").onclick = () => void runBusy(getElement("refuse"), () => sendAnswer(parameters, false));
});
