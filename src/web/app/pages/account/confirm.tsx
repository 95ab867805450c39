// Asks the user to authenticate again when the server requires it, then performs the action.
import { signal } from "@preact/signals";
import { supportsPasskeys, usePasskey } from "../../../browser/webauthn.ts";
import { call, Problem } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";

type Answer = { readonly password: string; readonly code: string };
type Question = {
  /** The account has a second factor, so its code is also required. */
  readonly hasCode: boolean;
  readonly hasPasskey: boolean;
  readonly act: (given: Answer) => Promise<unknown>;
  readonly done: (isDone: boolean) => void;
};
/** The authentication methods of the account. */
export type Proofs = { readonly hasCode: boolean; readonly hasPasskey: boolean };

const question = signal<Question | undefined>(undefined);

const askUser = (requested: Omit<Question, "done">): Promise<boolean> =>
  new Promise((done) => {
    question.value = { ...requested, done };
  });

const confirm = ({ password, code }: Answer): Promise<unknown> =>
  call("POST /users/me/confirm", { body: { password, ...(code.trim() === "" ? {} : { code }) } });

/** Runs `work`. If the server requires authentication first, asks the user and runs it again. Returns false if the user cancels. */
export const withConfirmation = async (proofs: Proofs, work: () => Promise<unknown>): Promise<boolean> => {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Problem && error.hasErrorFor("confirmation"))) throw error;
  }
  const hasPasskey = proofs.hasPasskey && supportsPasskeys();
  if (!(await askUser({ hasCode: proofs.hasCode, hasPasskey, act: confirm }))) return false;
  await work();
  return true;
};

/** Asks for password and code for a single action. Returns false if the user cancels. */
export const withPasswordAndCode = (work: (given: Answer) => Promise<unknown>): Promise<boolean> =>
  askUser({ hasCode: true, hasPasskey: false, act: work });

const confirmByPasskey = async (): Promise<void> => {
  await call("POST /users/me/confirm/passkey", { body: await usePasskey("/users/me/confirm/passkey/start") });
  finish(true);
};

const finish = (isDone: boolean): void => {
  const requested = question.value;
  question.value = undefined;
  requested?.done(isDone);
};

/** Renders the dialog. Used once per page. */
export const Confirmations = () => {
  const requested = question.value;
  if (!requested) return null;
  return (
    <FormDialog
      title="Confirm it's you"
      submit="Confirm"
      onClose={() => finish(false)}
      act={async ({ password = "", code = "" }) => {
        await requested.act({ password, code });
        finish(true);
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
          {requested.hasCode && (
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
          {requested.hasPasskey && (
            <div>
              <Button icon="key" onPress={confirmByPasskey}>
                Use a passkey
              </Button>
            </div>
          )}
        </>
      )}
    </FormDialog>
  );
};
