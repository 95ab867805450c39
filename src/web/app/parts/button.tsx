// Buttons: a label and an action. Disabled while the action runs; errors are shown in a toast.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { IconName } from "../icons.ts";
import { showError } from "../shell/toasts.tsx";
import { Icon } from "./icon.tsx";

type ButtonStyle = {
  readonly icon?: IconName;
  /** `primary` is the main action of a view. */
  readonly look?: "primary" | "ghost" | "danger" | "danger primary" | "ghost danger";
  readonly small?: boolean;
  /** Classes in addition to `btn`, such as `desk`. */
  readonly class?: string;
  /** Shown while Alt is held, and announced by screen readers. */
  readonly keys?: string;
};

export const toClass = ({ look, small, class: more }: ButtonStyle, isIcon = false): string =>
  ["btn", look, small && "sm", isIcon && "icon", more].filter(Boolean).join(" ");

/** Formats the keys for the `aria-keyshortcuts` attribute. */
const formatShortcut = (keys: string | undefined): string | undefined =>
  keys?.replace("Ctrl", "Control").replace("⏎", "Enter").replaceAll(" ", "+");

const Keys = ({ keys }: { keys?: string }) => (keys ? <kbd aria-hidden="true">{keys}</kbd> : null);

type ButtonProps = ButtonStyle & {
  readonly onPress?: (event: MouseEvent) => unknown;
  readonly disabled?: boolean;
  /** Ignores presses for now. Keeps the keyboard focus, unlike `disabled`. */
  readonly paused?: boolean;
  readonly type?: "button" | "submit";
  readonly pressed?: boolean;
  readonly form?: string;
  /** An accessible label with the name of the thing, for buttons whose text is ambiguous. */
  readonly label?: string;
  readonly children: ComponentChildren;
};

/** If `onPress` returns a promise, the button waits for it and shows its error. */
export const Button = ({
  icon,
  keys,
  onPress,
  disabled,
  paused = false,
  type = "button",
  pressed,
  form,
  label,
  children,
  ...look
}: ButtonProps) => {
  const isBusy = useSignal(false);
  const press = async (event: MouseEvent): Promise<void> => {
    if (isBusy.value || paused) return;
    const result = onPress?.(event);
    if (!(result instanceof Promise)) return;
    isBusy.value = true;
    await result.catch(showError).finally(() => {
      isBusy.value = false;
    });
  };
  return (
    <button
      class={toClass(look)}
      type={type}
      form={form}
      disabled={disabled}
      // Not `disabled`, which would lose the keyboard focus.
      aria-disabled={isBusy.value || paused || undefined}
      aria-label={label}
      aria-pressed={pressed}
      aria-keyshortcuts={formatShortcut(keys)}
      onClick={press}
    >
      {icon && <Icon name={icon} />}
      {children}
      <Keys keys={keys} />
    </button>
  );
};

/** A button with only an icon. `label` says what it does, with the name of the thing where there are several. */
export const IconButton = ({
  icon,
  label,
  onPress,
  disabled,
  pressed,
  ...look
}: ButtonStyle & {
  icon: IconName;
  label: string;
  onPress?: (event: MouseEvent) => unknown;
  disabled?: boolean;
  pressed?: boolean;
}) => {
  const isBusy = useRef(false);
  const press = (event: MouseEvent): void => {
    if (isBusy.current) return;
    const result = onPress?.(event);
    if (!(result instanceof Promise)) return;
    isBusy.current = true;
    void result.catch(showError).finally(() => {
      isBusy.current = false;
    });
  };
  return (
    <button
      class={toClass({ look: "ghost", ...look }, true)}
      type="button"
      aria-label={label}
      title={label}
      disabled={disabled}
      aria-pressed={pressed}
      onClick={press}
    >
      <Icon name={icon} />
    </button>
  );
};

/** A link styled as a button, for navigation. */
export const ButtonLink = ({
  icon,
  href,
  keys,
  children,
  newTab,
  label,
  ...look
}: ButtonStyle & { href: string; newTab?: boolean; label?: string; children: ComponentChildren }) => (
  <a
    class={toClass(look)}
    href={href}
    aria-label={label}
    aria-keyshortcuts={formatShortcut(keys)}
    {...(newTab ? { target: "_blank", rel: "noreferrer" } : {})}
  >
    {icon && <Icon name={icon} />}
    {children}
    <Keys keys={keys} />
  </a>
);
