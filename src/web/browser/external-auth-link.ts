// Links one account: redirects to the service and handles its response, or shows a device code and waits.
import type { ExternalAuth, ExternalAuthDevice } from "#schema/users/external-auth.ts";
import { call, Problem } from "./api.ts";
import { offerCopy, requireSession, runBusy, runPage, the } from "./page.ts";

const [, , id = "", isCallback] = location.pathname.split("/");
const PATH = `/external-auth/${id}`;
const pause = (seconds: number): Promise<void> => new Promise((done) => setTimeout(done, seconds * 1000));

/** True in a popup opened by the app. The service's pages clear the window's name, so it is stored. */
const isWindow = (): boolean => {
  if (window.name === `link-${id}`) sessionStorage.setItem("window", id);
  return sessionStorage.getItem("window") === id;
};

const showState = (words: string): void => {
  the("state").textContent = words;
};

/** Shows the page's only button. */
const offer = (words: string, act: () => Promise<void>): void => {
  const button = the<HTMLButtonElement>("go");
  button.textContent = words;
  button.hidden = false;
  button.onclick = () => void runBusy(button, act);
};

const toService = async (): Promise<void> => {
  const { url } = await call<{ url: string }>("POST", `${PATH}/start`);
  location.assign(url);
};

/** Handles the service's redirect. Codes and states are removed from the URL before anything else happens. */
const redirectBack = async (name: string): Promise<void> => {
  const { code, state, error, error_description } = Object.fromEntries(new URLSearchParams(location.search));
  history.replaceState(null, "", `/external-auth/${id}`);
  if (!code || !state) {
    offer(`Sign in at ${name}`, toService);
    showState("The account was not linked.");
    throw new Error(
      error === "access_denied"
        ? `You declined access at ${name}.`
        : error_description || error || `${name} sent no code.`,
    );
  }
  try {
    await call("POST", `${PATH}/callback`, { code, state });
  } catch (error) {
    offer(`Sign in at ${name}`, toService);
    showState("The account was not linked.");
    throw error;
  }
};

const WORDS: Record<string, string> = {
  access_denied: "You declined access at the service.",
  expired_token: "The code has expired.",
};

const linkByDevice = async (name: string): Promise<void> => {
  the("go").hidden = true;
  const started = await call<ExternalAuthDevice>("GET", `${PATH}/device`);
  the<HTMLAnchorElement>("page").href = started.verification_uri;
  the("page").textContent = `Open ${name}`;
  the("device").hidden = false;
  offerCopy(started.user_code);
  showState("Waiting for you to enter the code.");
  let seconds = started.interval;
  for (;;) {
    await pause(seconds);
    try {
      await call("POST", `${PATH}/device`, { device_code: started.device_code });
      the("device").hidden = true;
      return;
    } catch (error) {
      const detail = error instanceof Problem ? error.detail : "";
      if (detail === "slow_down") seconds += 5;
      // A service that is unreachable now may respond to the next poll.
      const goesOn = detail === "slow_down" || detail === "authorization_pending";
      if (goesOn || (error instanceof Problem && (error.status === 0 || error.status === 503))) continue;
      the("device").hidden = true;
      showState("The account was not linked.");
      offer("Get a new code", () => link(name));
      throw new Error(WORDS[detail] ?? (error instanceof Error ? error.message : String(error)));
    }
  }
};

const link = async (name: string): Promise<void> => {
  await linkByDevice(name);
  isLinked(name);
};

/** Notifies waiting pages (app/parts/link-account.tsx), and closes a popup that they opened. */
const isLinked = (name: string): void => {
  new BroadcastChannel("external-auth").postMessage(id);
  if (isWindow()) window.close();
  the("go").hidden = true;
  showState(`Your account at ${name} is linked. Your workspaces can now use it. You can close this page.`);
};

const startLinking = async (): Promise<void> => {
  const known = await call<ExternalAuth>("GET", PATH);
  const name = known.display_name;
  the("title").textContent = `Link your account at ${name}`;
  document.title = `Link ${name} · Slipway`;
  if (isCallback) {
    await redirectBack(name);
    isLinked(name);
  } else if (known.authenticated) isLinked(name);
  else if (known.device) await link(name);
  else {
    showState(`${name} asks you to allow Slipway to use your account, then sends you back here.`);
    offer(`Sign in at ${name}`, toService);
  }
};

isWindow();
runPage(async () => {
  await requireSession();
  await startLinking().catch((error) => {
    if (!(error instanceof Problem && error.status === 404)) throw error;
    showState("This server has no such service. Check the link, or ask an administrator.");
  });
});
