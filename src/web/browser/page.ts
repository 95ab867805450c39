// Functions shared by all plain pages: find elements, load the session, submit a form once, show errors.
import type { User } from "#schema/users/user.ts";
import { call, Problem } from "./api.ts";
import { clearUserData } from "./user-storage.ts";

/** Returns the element with this ID. Pages and scripts are built together, so a missing element is a bug. */
export const getElement = <T extends HTMLElement = HTMLElement>(id: string): T => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no #${id}`);
  return found as T;
};

/** Creates an element with text and children. Nothing is parsed as HTML. */
export const createElement = (
  tag: string,
  properties: Record<string, string> = {},
  ...inside: (Node | string)[]
): HTMLElement => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
};

/** Runs a page's main function and shows its errors, so that no page stays empty without a message. */
export const runPage = (main: () => Promise<void>): void => void main().catch((error) => showProblem(error));

/** True when the server has its first user. */
export const isSetUp = async (): Promise<boolean> => {
  try {
    await call("GET", "/users/first");
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return false;
    throw error;
  }
};

const SECURITY_PATH = "/account/security";
let isSignedIn = false;

/** Returns the signed-in user, or undefined. Fills the header. */
export const loadSession = async (): Promise<User | undefined> => {
  getElement("sign-out").onclick = async () => {
    try {
      await call("POST", "/users/logout");
    } catch (error) {
      if (!(error instanceof Problem && error.status === 401)) return showProblem(error);
    }
    clearUserData();
    location.assign("/");
  };
  document.querySelector(`#nav a[href="${location.pathname}"]`)?.setAttribute("aria-current", "page");
  let user: User;
  try {
    user = await call<User>("GET", "/users/me");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return undefined;
    throw error;
  }
  getElement("who").textContent = user.username;
  getElement("nav").hidden = false;
  isSignedIn = true;
  return user;
};

/** Returns the signed-in user. If no user is signed in, redirects to the sign-in page, which returns here. */
export const requireSession = async (): Promise<User> => {
  const user = await loadSession();
  if (user) return user;
  signInAgain();
  return new Promise(() => {});
};

/** Returns the path, and the query if the page needs it again after sign-in. */
const getCurrentAddress = (): string =>
  location.pathname + (/^\/(oauth2\/|open-app$)/.test(location.pathname) ? location.search : "");

const signInAgain = (): void => location.replace(`/login?redirect=${encodeURIComponent(getCurrentAddress())}`);

/** Shows an error where the user sees it. If the session has expired, redirects to the sign-in page. */
export const showProblem = (error: unknown, id = "problem"): void => {
  if (isSignedIn && error instanceof Problem && error.status === 401) {
    signInAgain();
    return;
  }
  // Until the user has a second factor, only the security page is accessible.
  const isEnrolling = error instanceof Problem && error.status === 403 && error.hasErrorFor("second_factor");
  if (isEnrolling && location.pathname !== SECURITY_PATH) {
    location.replace(SECURITY_PATH);
    return;
  }
  const problem = getElement(id);
  problem.textContent = error instanceof Error ? error.message : String(error);
  if (problem.textContent) problem.scrollIntoView({ block: "nearest" });
};

/** Shows a success message in #done. */
export const showDone = (text: string): void => {
  getElement("done").textContent = text;
};

/** Runs the button's action, unless it is already running. `disabled` would lose the keyboard focus. */
export const runBusy = async (button: HTMLElement, act: () => Promise<void>, problem = "problem"): Promise<void> => {
  if (button.ariaDisabled === "true") return;
  button.ariaDisabled = "true";
  showProblem("", problem);
  try {
    await act();
  } catch (error) {
    showProblem(error, problem);
  } finally {
    button.ariaDisabled = null;
  }
};

/** Calls `send` with the form's values on submit, one at a time. Errors are shown in the element with that ID. */
export const onSubmit = (
  send: (values: Record<string, string>) => Promise<void>,
  { form: id = "form", problem = "problem" } = {},
): void => {
  const form = getElement<HTMLFormElement>(id);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    void runBusy(form.querySelector("button") ?? form, () => send(Object.fromEntries(values)), problem);
  });
};

/** Shows a secret that is visible only once, with a copy button. */
export const showSecret = (key: string): void => {
  getElement("made").hidden = false;
  offerCopy(key);
  getElement("copy").focus();
};

/** Asks in the dialog #sure; resolves to true for yes. */
export const confirmInDialog = (question: string): Promise<boolean> => {
  const dialog = getElement<HTMLDialogElement>("sure");
  getElement("sure-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
};

/** Shows a text with a button that copies it. */
export const offerCopy = (text: string): void => {
  const output = getElement("key");
  const copy = getElement<HTMLButtonElement>("copy");
  output.textContent = text;
  copy.textContent = "Copy";
  copy.ariaLive = "polite";
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      // Without HTTPS there is no clipboard: select the text, so that one shortcut copies it.
      getSelection()?.selectAllChildren(output);
      copy.textContent = "Selected";
    }
  };
};
