// What every page does: find its elements, know who is signed in, send a form once, show a problem in words.
import type { User } from "#schema/users/user.ts";
import { call, Problem } from "./api.ts";
import { forgetPerson } from "./kept.ts";

/** The element with this id; the pages and their scripts belong together, so a missing one is a mistake. */
export const the = <T extends HTMLElement = HTMLElement>(id: string): T => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no #${id}`);
  return found as T;
};

/** Makes an element with text and children; nothing is ever parsed as HTML. */
export const make = (
  tag: string,
  properties: Record<string, string> = {},
  ...inside: (Node | string)[]
): HTMLElement => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};

/** The story of a page; whatever goes wrong in it is said, so that no page stays empty without a word. */
export const run = (story: () => Promise<void>): void => void story().catch((error) => showProblem(error));

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

const SECURITY = "/account/security";
let isIn = false;

/** The signed-in user, or undefined; fills the bar at the top. */
export const signedIn = async (): Promise<User | undefined> => {
  the("sign-out").onclick = async () => {
    try {
      await call("POST", "/users/logout");
    } catch (error) {
      if (!(error instanceof Problem && error.status === 401)) return showProblem(error);
    }
    forgetPerson();
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
  the("who").textContent = user.username;
  the("nav").hidden = false;
  isIn = true;
  return user;
};

/** The signed-in user; anyone who is not signed in is sent to the sign-in page and returns. */
export const mustBeSignedIn = async (): Promise<User> => {
  const user = await signedIn();
  if (user) return user;
  signInAgain();
  return new Promise(() => {});
};

/** What these pages ask about stands in their query, and is asked again after signing in. */
const here = (): string =>
  location.pathname + (/^\/(oauth2\/|open-app$)/.test(location.pathname) ? location.search : "");

const signInAgain = (): void => location.replace(`/login?redirect=${encodeURIComponent(here())}`);

/** Says what went wrong, where it is seen. When it is that the session has ended, the person signs in and returns. */
export const showProblem = (error: unknown, id = "problem"): void => {
  if (isIn && error instanceof Problem && error.status === 401) {
    signInAgain();
    return;
  }
  // Until they have a second factor, that page is all there is for them.
  const isEnrolling = error instanceof Problem && error.status === 403 && error.names("second_factor");
  if (isEnrolling && location.pathname !== SECURITY) {
    location.replace(SECURITY);
    return;
  }
  const problem = the(id);
  problem.textContent = error instanceof Error ? error.message : String(error);
  if (problem.textContent) problem.scrollIntoView({ block: "nearest" });
};

/** Says in #done what was done. */
export const say = (words: string): void => {
  the("done").textContent = words;
};

/** Does what a button is for, unless it is being done already. `disabled` would take the focus from anyone who pressed it by keyboard. */
export const busyWith = async (button: HTMLElement, act: () => Promise<void>, problem = "problem"): Promise<void> => {
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

/** Runs `send` with the form's values when it is submitted; one at a time, problems are shown in the element of that id. */
export const onSubmit = (
  send: (values: Record<string, string>) => Promise<void>,
  { form: id = "form", problem = "problem" } = {},
): void => {
  const form = the<HTMLFormElement>(id);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    void busyWith(form.querySelector("button") ?? form, () => send(Object.fromEntries(values)), problem);
  });
};

/** Shows a secret that is seen only once, with a button that copies it. */
export const showSecret = (key: string): void => {
  the("made").hidden = false;
  offerCopy(key);
  the("copy").focus();
};

/** Asks in the dialog #sure; true for yes. */
export const askWhether = (question: string): Promise<boolean> => {
  const dialog = the<HTMLDialogElement>("sure");
  the("sure-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
};

/** Shows a text with a button that copies it. */
export const offerCopy = (text: string): void => {
  const output = the("key");
  const copy = the<HTMLButtonElement>("copy");
  output.textContent = text;
  copy.textContent = "Copy";
  copy.ariaLive = "polite";
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      // No clipboard without https: select it, so that one key press copies.
      getSelection()?.selectAllChildren(output);
      copy.textContent = "Selected";
    }
  };
};
