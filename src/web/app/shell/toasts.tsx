// Toasts: short messages about completed actions, with undo where possible, and errors.
import { signal } from "@preact/signals";
import { formatError } from "../data/api.ts";
import { Icon } from "../parts/icon.tsx";

type Toast = {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
  readonly action?: { readonly label: string; readonly act: () => unknown };
};

const TOAST_DURATION_MS = 6_000;
const MAX_TOASTS = 4;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((one) => one.id !== id);
};

const addToast = (toast: Omit<Toast, "id">): void => {
  const id = ++lastId;
  toasts.value = [...toasts.value, { ...toast, id }].slice(-MAX_TOASTS);
  // Errors stay until dismissed.
  if (!toast.isBad) setTimeout(() => dismiss(id), TOAST_DURATION_MS);
};

export const showToast = (text: string, action?: Toast["action"]): void => addToast({ text, isBad: false, action });

/** Shows an error. For use with `catch`. */
export const showError = (error: unknown): void => addToast({ text: formatError(error), isBad: true });

export const Toasts = () => (
  <div class="toasts" role="region" aria-label="Messages">
    {toasts.value.map(({ id, text, isBad, action }) => (
      <div key={id} class="toast" role={isBad ? "alert" : "status"}>
        <span class={isBad ? "t-bad" : "t-ok"}>
          <Icon name={isBad ? "warn" : "check"} />
        </span>
        <span>{text}</span>
        <span class="line">
          {action && (
            <button
              type="button"
              class="btn sm ghost"
              onClick={() => {
                dismiss(id);
                const result = action.act();
                if (result instanceof Promise) void result.catch(showError);
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class="btn icon ghost" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="x" />
          </button>
        </span>
      </div>
    ))}
  </div>
);
