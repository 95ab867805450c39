// Asks who one is, where the server wants to know it before it continues, and then does what was wanted.
import { signal } from "@preact/signals";
import { knowsPasskeys, usePasskey } from "../../../browser/webauthn.ts";
import { call, Problem } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";

type Answer = { readonly password: string; readonly code: string };
type Question = {
  /** A second factor is there: its code is asked for, too. */
  readonly hasCode: boolean;
  readonly hasPasskey: boolean;
  readonly act: (given: Answer) => Promise<unknown>;
  readonly done: (isDone: boolean) => void;
};
/** What an account has to prove itself with. */
export type Proofs = { readonly hasCode: boolean; readonly hasPasskey: boolean };

const question = signal<Question | undefined>(undefined);

const put = (asked: Omit<Question, "done">): Promise<boolean> =>
  new Promise((done) => {
    question.value = { ...asked, done };
  });

const confirm = ({ password, code }: Answer): Promise<unknown> =>
  call("POST /users/me/confirm", { body: { password, ...(code.trim() === "" ? {} : { code }) } });

/** Does `work`; where the server wants to know first who it is, asks and does it then. False: the person has cancelled. */
export const confirmed = async (proofs: Proofs, work: () => Promise<unknown>): Promise<boolean> => {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Problem && error.names("confirmation"))) throw error;
  }
  const hasPasskey = proofs.hasPasskey && knowsPasskeys();
  if (!(await put({ hasCode: proofs.hasCode, hasPasskey, act: confirm }))) return false;
  await work();
  return true;
};

/** Asks for password and code for one thing alone. False: the person has cancelled. */
export const withPasswordAndCode = (work: (given: Answer) => Promise<unknown>): Promise<boolean> =>
  put({ hasCode: true, hasPasskey: false, act: work });

const byPasskey = async (): Promise<void> => {
  await call("POST /users/me/confirm/passkey", { body: await usePasskey("/users/me/confirm/passkey/start") });
  end(true);
};

const end = (isDone: boolean): void => {
  const asked = question.value;
  question.value = undefined;
  asked?.done(isDone);
};

/** Draws the question; once on the page. */
export const Confirmations = () => {
  const asked = question.value;
  if (!asked) return null;
  return (
    <FormDialog
      title="Confirm it's you"
      submit="Confirm"
      onClose={() => end(false)}
      act={async ({ password = "", code = "" }) => {
        await asked.act({ password, code });
        end(true);
      }}
    >
      {(problems) => (
        <>
          <Field
            label="Password"
            name="password"
            type="password"
            required
            autocomplete="current-password"
            error={problems.password}
          />
          {asked.hasCode && (
            <Field
              label="Code"
              name="code"
              required
              autocomplete="one-time-code"
              spellcheck={false}
              hint="From your authenticator app, or a recovery code."
              error={problems.code}
            />
          )}
          {asked.hasPasskey && (
            <div>
              <Button icon="key" onPress={byPasskey}>
                Use a passkey
              </Button>
            </div>
          )}
        </>
      )}
    </FormDialog>
  );
};
