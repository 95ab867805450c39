// A dialog with a form. It closes when the action succeeds. An error is shown once: at the field that the server names, otherwise below the
// form.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { formatError, formatValidations, Problem } from "../data/api.ts";
import { Button } from "./button.tsx";
import { Dialog, isNotFound, showNotFound } from "./dialog.tsx";
import { FieldProblems } from "./field.tsx";
import { capitalize, readTexts } from "./form-texts.ts";
import { submitWith } from "./handlers.ts";

type Validation = { readonly field: string; readonly detail: string };

/** The errors of the form in `ref`, which needs `FieldProblems` around its fields. `rest` has the errors that no field shows. */
export const useFormProblems = () => {
  const ref = useRef<HTMLFormElement>(null);
  const validations = useSignal<readonly Validation[]>([]);
  const message = useSignal("");
  const fields = Object.fromEntries(validations.value.map(({ field, detail }) => [field, capitalize(detail)]));
  useLayoutEffect(() => {
    if (validations.value.length === 0) return;
    const shownErrors = new Set(
      [...(ref.current?.querySelectorAll(".error") ?? [])].map(({ textContent }) => textContent),
    );
    message.value = formatValidations(validations.value.filter(({ detail }) => !shownErrors.has(capitalize(detail))));
    ref.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [validations.value]);
  const clear = (): void => {
    validations.value = [];
    message.value = "";
  };
  const show = (error: unknown): void => {
    const fieldErrors = error instanceof Problem && error.status === 400 ? (error.body.validations ?? []) : [];
    if (fieldErrors.length > 0) validations.value = fieldErrors;
    else message.value = formatError(error);
  };
  return { ref, fields, rest: message.value, clear, show };
};

type FormDialogProps = {
  readonly title: string;
  /** A verb and an object: Add user. */
  readonly submitLabel: string;
  readonly onClose: () => void;
  /** The name of the thing being changed. If it no longer exists, the dialog closes with a message. Omitted for something new. */
  readonly thing?: string | undefined;
  /** Receives the form's values by name. The dialog closes when it resolves. */
  readonly act: (values: Readonly<Record<string, string>>) => Promise<unknown>;
  /** The fields; `problems` are the server's errors by field name. */
  readonly children: (problems: Readonly<Record<string, string>>) => ComponentChildren;
};

export const FormDialog = ({ title, submitLabel, onClose, thing, act, children }: FormDialogProps) => {
  const id = useId();
  const problems = useFormProblems();
  const isBusy = useRef(false);
  const submitForm = async (form: HTMLFormElement): Promise<void> => {
    // Disabling the button would lose the keyboard focus.
    if (isBusy.current) return;
    isBusy.current = true;
    problems.clear();
    try {
      await act(readTexts(form));
      onClose();
    } catch (error) {
      if (thing !== undefined && isNotFound(error)) {
        onClose();
        showNotFound(thing);
        return;
      }
      problems.show(error);
    } finally {
      isBusy.current = false;
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button look="primary" type="submit" form={id}>
            {submitLabel}
          </Button>
        </>
      }
    >
      <form id={id} ref={problems.ref} class="stack" onSubmit={submitWith(submitForm)}>
        <FieldProblems.Provider value={problems.fields}>{children(problems.fields)}</FieldProblems.Provider>
        {problems.rest && (
          <p class="t-bad" role="alert">
            {problems.rest}
          </p>
        )}
      </form>
    </Dialog>
  );
};
