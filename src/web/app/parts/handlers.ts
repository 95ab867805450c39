// Handlers that only write a signal, for the controls of pages.
import type { Signal } from "@preact/signals";

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

/** Sends a form by `send` in place of the browser. */
export const submits =
  (send: (form: HTMLFormElement) => unknown) =>
  (event: Event & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault();
    void send(event.currentTarget);
  };
