// Links one account: redirects to the service and handles its response, or shows a device code and waits.
import type { ExternalAuth, ExternalAuthDevice } from "#schema/users/external-auth.ts";
import { call, Problem } from "./api.ts";
import { getElement, offerCopy, requireSession, runBusy, runPage } from "./page.ts";

const [, , id = "", isCallback] = location.pathname.split("/");
const PATH = `/external-auth/${id}`;
const waitSeconds = (seconds: number): Promise<void> => new Promise((done) => setTimeout(done, seconds * 1000));

/** Returns true in a popup that the app opened. Stores this, because the service's pages clear the window's name. */
const isPopup = (): boolean => {
  if (window.name === `link-${id}`) sessionStorage.setItem("window", id);
  return sessionStorage.getItem("window") === id;
};

const showState = (text: string): void => {
  getElement("state").textContent = text;
};

/** Shows the page's only button. */
const showButton = (label: string, act: () => Promise<void>): void => {
  const button = getElement<HTMLButtonElement>("go");
  button.textContent = label;
  button.hidden = false;
  button.onclick = () => void runBusy(button, act);
};

const goToService = async (): Promise<void> => {
  const { url } = await call<{ url: string }>("POST", `${PATH}/start`);
  location.assign(url);
};

/** Handles the service's redirect. First removes the code and the state from the URL. */
const handleRedirect = async (name: string): Promise<void> => {
  const { code, state, error, error_description } = Object.fromEntries(new URLSearchParams(location.search));
  history.replaceState(null, "", `/external-auth/${id}`);
  if (!code || !state) {
    showButton(`Sign in at ${name}`, goToService);
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
    showButton(`Sign in at ${name}`, goToService);
    showState("The account was not linked.");
    throw error;
  }
};

const ERROR_TEXTS: Record<string, string> = {
  access_denied: "You declined access at the service.",
  expired_token: "The code has expired.",
};

const linkByDevice = async (name: string): Promise<void> => {
  getElement("go").hidden = true;
  const device = await call<ExternalAuthDevice>("GET", `${PATH}/device`);
  getElement<HTMLAnchorElement>("page").href = device.verification_uri;
  getElement("page").textContent = `Open ${name}`;
  getElement("device").hidden = false;
  offerCopy(device.user_code);
  showState("Waiting for you to enter the code.");
  let intervalSeconds = device.interval;
  for (;;) {
    await waitSeconds(intervalSeconds);
    try {
      await call("POST", `${PATH}/device`, { device_code: device.device_code });
      getElement("device").hidden = true;
      return;
    } catch (error) {
      const detail = error instanceof Problem ? error.detail : "";
      if (detail === "slow_down") intervalSeconds += 5;
      // A service that is unreachable now may respond to the next poll.
      const isPending = detail === "slow_down" || detail === "authorization_pending";
      if (isPending || (error instanceof Problem && (error.status === 0 || error.status === 503))) continue;
      getElement("device").hidden = true;
      showState("The account was not linked.");
      showButton("Get a new code", () => link(name));
      throw new Error(ERROR_TEXTS[detail] ?? (error instanceof Error ? error.message : String(error)));
    }
  }
};

const link = async (name: string): Promise<void> => {
  await linkByDevice(name);
  showLinked(name);
};

/** Notifies waiting pages (app/parts/link-account.tsx), and closes a popup that they opened. */
const showLinked = (name: string): void => {
  new BroadcastChannel("external-auth").postMessage(id);
  if (isPopup()) window.close();
  getElement("go").hidden = true;
  showState(`Your account at ${name} is linked. Your workspaces can now use it. You can close this page.`);
};

const startLinking = async (): Promise<void> => {
  const account = await call<ExternalAuth>("GET", PATH);
  const name = account.display_name;
  getElement("title").textContent = `Link your account at ${name}`;
  document.title = `Link ${name} · Slipway`;
  if (isCallback) {
    await handleRedirect(name);
    showLinked(name);
  } else if (account.authenticated) showLinked(name);
  else if (account.device) await link(name);
  else {
    showState(`${name} asks you to allow Slipway to use your account, then sends you back here.`);
    showButton(`Sign in at ${name}`, goToService);
  }
};

isPopup();
runPage(async () => {
  await requireSession();
  await startLinking().catch((error) => {
    if (!(error instanceof Problem && error.status === 404)) throw error;
    showState("This server has no such service. Check the link, or ask an administrator.");
  });
});
