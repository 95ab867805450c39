// Handlers that only write a signal, for the controls of pages.
import type { Signal } from "@preact/signals";
import { failed } from "../shell/toasts.tsx";

/** Gives the signal this value, whatever happened. */
export const sets =
  <T>(target: Signal<T>, value: T) =>
  (): void => {
    target.value = value;
  };

/** Writes what a control gives into the signal. */
export const into =
  <T>(target: Signal<T>) =>
  (value: T): void => {
    target.value = value;
  };

/** Writes what is typed or picked into the signal. */
export const textInto =
  (target: Signal<string>) =>
  ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void => {
    target.value = currentTarget.value;
  };

const sending = new WeakSet<HTMLFormElement>();

/** Sends a form by `send` in place of the browser; once, however often it is pressed until that is over. */
export const submits =
  (send: (form: HTMLFormElement) => unknown) =>
  (event: Event & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    const form = event.currentTarget;
    if (sending.has(form)) return;
    sending.add(form);
    form.ariaBusy = "true";
    void Promise.resolve(send(form))
      .catch(failed)
      .finally(() => {
        sending.delete(form);
        form.ariaBusy = null;
      });
  };
