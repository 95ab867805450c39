// Event handlers that write a signal, for the controls of pages.
import type { Signal } from "@preact/signals";
import { showError } from "../shell/toasts.tsx";

/** Returns a handler that sets the signal to this value. */
export const setTo =
  <T>(target: Signal<T>, value: T) =>
  (): void => {
    target.value = value;
  };

/** Returns a handler that writes the control's value to the signal. */
export const writeTo =
  <T>(target: Signal<T>) =>
  (value: T): void => {
    target.value = value;
  };

/** Returns a handler that writes the typed or selected text to the signal. */
export const writeTextTo =
  (target: Signal<string>) =>
  ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void => {
    target.value = currentTarget.value;
  };

const busyForms = new WeakSet<HTMLFormElement>();

/** Returns a handler that submits the form with `send` instead of the browser. Further submissions are ignored until it has finished. */
export const submitWith =
  (send: (form: HTMLFormElement) => unknown) =>
  (event: Event & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (busyForms.has(form)) return;
    busyForms.add(form);
    form.ariaBusy = "true";
    void Promise.resolve(send(form))
      .catch(showError)
      .finally(() => {
        busyForms.delete(form);
        form.ariaBusy = null;
      });
  };
