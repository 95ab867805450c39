// What every page does: find its elements, know who is signed in, send a form once, show a problem in words.
import type { User } from "#schema/user.ts";
import { call, Problem } from "./api.ts";

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

/** The signed-in user, or undefined; fills the bar at the top. */
export const signedIn = async (): Promise<User | undefined> => {
  let user: User;
  try {
    user = await call<User>("GET", "/users/me");
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return undefined;
    throw error;
  }
  the("who").textContent = user.username;
  the("nav").hidden = false;
  the("sign-out").onclick = async () => {
    await call("POST", "/users/logout").catch(() => {});
    location.assign("/");
  };
  return user;
};

/** The signed-in user; whoever is not signed in is sent to the sign-in page and comes back. */
export const mustBeSignedIn = async (): Promise<User> => {
  const user = await signedIn();
  if (user) return user;
  location.replace(`/login?redirect=${encodeURIComponent(location.pathname)}`);
  return new Promise(() => {});
};

export const showProblem = (error: unknown): void => {
  the("problem").textContent = error instanceof Error ? error.message : String(error);
};

/** Runs `send` with the form's values when it is submitted; one at a time, problems are shown in #problem. */
export const onSubmit = (send: (values: Record<string, string>) => Promise<void>): void => {
  const form = the<HTMLFormElement>("form");
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    showProblem("");
    if (button) button.disabled = true;
    try {
      await send(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)])));
    } catch (error) {
      showProblem(error);
    } finally {
      if (button) button.disabled = false;
    }
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
