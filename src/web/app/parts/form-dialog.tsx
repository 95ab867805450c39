// A dialog with a form. Errors are shown at the field that the server names, otherwise in the dialog. It closes when the action succeeds.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { formatError, Problem } from "../data/api.ts";
import { Button } from "./button.tsx";
import { Dialog, isNotFound, showNotFound } from "./dialog.tsx";
import { readTexts } from "./form-texts.ts";
import { submits } from "./handlers.ts";

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
  const problem = useSignal("");
  const problems = useSignal<Readonly<Record<string, string>>>({});
  const busy = useRef(false);
  const send = async (form: HTMLFormElement): Promise<void> => {
    // Disabling the button would lose the keyboard focus.
    if (busy.current) return;
    busy.current = true;
    problem.value = "";
    problems.value = {};
    try {
      await act(readTexts(form));
      onClose();
    } catch (error) {
      if (thing !== undefined && isNotFound(error)) {
        onClose();
        showNotFound(thing);
        return;
      }
      problem.value = formatError(error);
      if (error instanceof Problem) {
        problems.value = Object.fromEntries((error.body.validations ?? []).map(({ field, detail }) => [field, detail]));
      }
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
      <form id={id} class="stack" onSubmit={submits(send)}>
        {children(problems.value)}
        {problem.value && (
          <p class="t-bad" role="alert">
            {problem.value}
          </p>
        )}
      </form>
    </Dialog>
  );
};
