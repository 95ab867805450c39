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
import { submits } from "./handlers.ts";

type Validation = { readonly field: string; readonly detail: string };

/** The errors of the form in `ref`, which needs `FieldProblems` around its fields. `rest` has the errors that no field shows. */
export const useFormProblems = () => {
  const ref = useRef<HTMLFormElement>(null);
  const shown = useSignal<readonly Validation[]>([]);
  const rest = useSignal("");
  const fields = Object.fromEntries(shown.value.map(({ field, detail }) => [field, capitalize(detail)]));
  useLayoutEffect(() => {
    if (shown.value.length === 0) return;
    const at = new Set([...(ref.current?.querySelectorAll(".error") ?? [])].map(({ textContent }) => textContent));
    rest.value = formatValidations(shown.value.filter(({ detail }) => !at.has(capitalize(detail))));
    ref.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [shown.value]);
  const clear = (): void => {
    shown.value = [];
    rest.value = "";
  };
  const show = (error: unknown): void => {
    const named = error instanceof Problem && error.status === 400 ? (error.body.validations ?? []) : [];
    if (named.length > 0) shown.value = named;
    else rest.value = formatError(error);
  };
  return { ref, fields, rest: rest.value, clear, show };
};

type FormDialogProps = {
  readonly title: string;
  /** A verb and an object: Add user. */
  readonly submit: string;
  readonly onClose: () => void;
  /** The name of the thing being changed. If it no longer exists, the dialog closes with a message. Omitted for something new. */
  readonly thing?: string | undefined;
  /** Receives the form's values by name. The dialog closes when it resolves. */
  readonly act: (values: Readonly<Record<string, string>>) => Promise<unknown>;
  /** The fields; `problems` are the server's errors by field name. */
  readonly children: (problems: Readonly<Record<string, string>>) => ComponentChildren;
};

export const FormDialog = ({ title, submit, onClose, thing, act, children }: FormDialogProps) => {
  const id = useId();
  const problems = useFormProblems();
  const busy = useRef(false);
  const send = async (form: HTMLFormElement): Promise<void> => {
    // Disabling the button would lose the keyboard focus.
    if (busy.current) return;
    busy.current = true;
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
      busy.current = false;
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
            {submit}
          </Button>
        </>
      }
    >
      <form id={id} ref={problems.ref} class="stack" onSubmit={submits(send)}>
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
