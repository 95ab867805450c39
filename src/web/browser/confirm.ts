// Asks in the dialog #confirm who one is, where the server wants to know before it goes on.
import { call, Problem } from "./api.ts";
import { busyWith, onSubmit, showProblem, the } from "./page.ts";
import { knowsPasskeys, usePasskey } from "./webauthn.ts";

const PROBLEM = "confirm-problem";
const dialog = the<HTMLDialogElement>("confirm");
const form = the<HTMLFormElement>("confirm-form");

type Answer = { password: string; code: string };
/** What is done with what was entered; the dialog closes when it succeeds. */
let act: (given: Answer) => Promise<void> = async () => {};

/** Which fields there are: a code for who has a second factor, a passkey where there is one. */
export const confirmsWith = ({ code, passkey }: { code: boolean; passkey: boolean }): void => {
  the("confirm-code").hidden = !code;
  the("confirm-passkey").hidden = !passkey || !knowsPasskeys();
};

/** Asks, and resolves to true when `work` has been done with the answer; false when the person cancels. */
const ask = (work: (given: Answer) => Promise<void>, mayUsePasskey: boolean): Promise<boolean> => {
  const hidden = the("confirm-passkey").hidden;
  if (!mayUsePasskey) the("confirm-passkey").hidden = true;
  act = work;
  form.reset();
  showProblem("", PROBLEM);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = (): void => {
      the("confirm-passkey").hidden = hidden;
      resolve(dialog.returnValue === "yes");
    };
    dialog.addEventListener("close", closed, { once: true });
  });
};

onSubmit(
  async ({ password = "", code = "" }) => {
    await act({ password, code });
    dialog.close("yes");
  },
  { form: "confirm-form", problem: PROBLEM },
);
the("confirm-cancel").addEventListener("click", () => dialog.close("no"));
the("confirm-passkey").addEventListener("click", () => {
  const confirm = async (): Promise<void> => {
    await call("POST", "/users/me/confirm/passkey", await usePasskey("/users/me/confirm/passkey/start"));
    dialog.close("yes");
  };
  void busyWith(the("confirm-passkey"), confirm, PROBLEM);
});

const confirmNow = ({ password, code }: Answer): Promise<void> =>
  call("POST", "/users/me/confirm", { password, ...(code.trim() === "" ? {} : { code }) });

const needsConfirmation = (error: unknown): boolean => error instanceof Problem && error.names("confirmation");

/** Does `work`; where the server wants to know first who it is, asks and does it then. False: the person has cancelled. */
export const confirmed = async (work: () => Promise<void>): Promise<boolean> => {
  try {
    await work();
    return true;
  } catch (error) {
    if (!needsConfirmation(error)) throw error;
  }
  if (!(await ask(confirmNow, true))) return false;
  await work();
  return true;
};

/** Asks for password and code for one thing alone. False: the person has cancelled. */
export const withPasswordAndCode = (work: (given: Answer) => Promise<void>): Promise<boolean> => ask(work, false);
