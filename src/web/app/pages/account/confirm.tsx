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
  readonly needsCode: boolean;
  readonly hasPasskey: boolean;
  readonly act: (answer: Answer) => Promise<unknown>;
  readonly onClose: (isDone: boolean) => void;
};
/** The authentication methods of the account. */
export type AuthMethods = { readonly hasCode: boolean; readonly hasPasskey: boolean };

const question = signal<Question | undefined>(undefined);

const askUser = (newQuestion: Omit<Question, "onClose">): Promise<boolean> =>
  new Promise((onClose) => {
    question.value = { ...newQuestion, onClose };
  });

const confirm = ({ password, code }: Answer): Promise<unknown> =>
  call("POST /users/me/confirm", { body: { password, ...(code.trim() === "" ? {} : { code }) } });

/** Runs `act`. If the server requires authentication first, asks the user and runs it again. Returns false if the user cancels. */
export const withConfirmation = async (proofs: AuthMethods, act: () => Promise<unknown>): Promise<boolean> => {
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof Problem && error.hasErrorFor("confirmation"))) throw error;
  }
  const hasPasskey = proofs.hasPasskey && supportsPasskeys();
  if (!(await askUser({ needsCode: proofs.hasCode, hasPasskey, act: confirm }))) return false;
  await act();
  return true;
};

/** Asks for password and code for a single action. Returns false if the user cancels. */
export const withPasswordAndCode = (act: (answer: Answer) => Promise<unknown>): Promise<boolean> =>
  askUser({ needsCode: true, hasPasskey: false, act });

const confirmByPasskey = async (): Promise<void> => {
  await call("POST /users/me/confirm/passkey", { body: await usePasskey("/users/me/confirm/passkey/start") });
  closeDialog(true);
};

const closeDialog = (isDone: boolean): void => {
  const closedQuestion = question.value;
  question.value = undefined;
  closedQuestion?.onClose(isDone);
};

/** Renders the dialog. Used once per page. */
export const ConfirmationDialog = () => {
  const openQuestion = question.value;
  if (!openQuestion) return null;
  return (
    <FormDialog
      title="Confirm it's you"
      submitLabel="Confirm"
      onClose={() => closeDialog(false)}
      act={async ({ password = "", code = "" }) => {
        await openQuestion.act({ password, code });
        closeDialog(true);
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
          {openQuestion.needsCode && (
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
          {openQuestion.hasPasskey && (
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
