// Dialogs based on the browser's <dialog>: the focus stays inside, Escape closes, and the focus returns to where it was.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { formatError, Problem } from "../data/api.ts";
import { showToast } from "../shell/toasts.tsx";
import { Button } from "./button.tsx";
import { writeTextTo } from "./handlers.ts";

type DialogProps = {
  readonly title: string;
  /** Called when the dialog is closed, canceled or finished. */
  readonly onClose: () => void;
  readonly class?: string;
  /** Defaults to a button that closes the dialog. */
  readonly footer?: ComponentChildren;
  readonly children: ComponentChildren;
};

/**
 * Returns the focus to where it was before `box` opened, or to the page if that element was removed. If the user has already moved the
 * focus, it stays: Escape closes the dialog immediately, and this runs a moment later.
 */
export const restoreFocus = (focusedBefore: Element | null, box: Element | null): void => {
  const focused = document.activeElement;
  if (focused && focused !== document.body && !box?.contains(focused)) return;
  const target =
    focusedBefore?.isConnected && focusedBefore !== document.body ? focusedBefore : document.getElementById("main");
  // Keeps the scroll position.
  if (target instanceof HTMLElement) target.focus({ preventScroll: true });
};

/** The dialog is open while it is mounted. */
export const Dialog = ({ title, onClose, class: more, footer, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  // A click outside closes the dialog, unless it began inside (such as selecting text) or something was typed.
  const isPressedOutside = useRef(false);
  const hasTyped = useRef(false);
  useEffect(() => {
    const [focusedBefore, box] = [document.activeElement, ref.current];
    box?.showModal();
    return () => restoreFocus(focusedBefore, box);
  }, []);
  return (
    <dialog
      ref={ref}
      class={["dialog", more].filter(Boolean).join(" ")}
      aria-label={title}
      onClose={onClose}
      onPointerDown={({ target }) => {
        isPressedOutside.current = target === ref.current;
      }}
      onInput={() => {
        hasTyped.current = true;
      }}
      onClick={({ target }) =>
        target === ref.current && isPressedOutside.current && !hasTyped.current && ref.current?.close()
      }
    >
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body">{children}</div>
      <footer>{footer ?? <Button onPress={onClose}>Close</Button>}</footer>
    </dialog>
  );
};

/**
 * True if the resource no longer exists. An unknown value that the user typed is reported as a field error instead. `call` (data/api.ts) reloads the
 * lists.
 */
export const isNotFound = (error: unknown): boolean =>
  error instanceof Problem && (error.status === 404 || error.status === 410) && !error.body.validations?.length;

export const showNotFound = (thing: string): void =>
  showToast(`${thing} no longer exists, or you no longer have access to it`);

type Question = {
  readonly title: string;
  /** Describes the consequences in a sentence. */
  readonly text: ComponentChildren;
  /** The confirming action as a verb and an object: Delete workspace. */
  readonly confirmLabel: string;
  /** The alternative: Keep it. */
  readonly cancelLabel: string;
  readonly isDanger?: boolean;
  /** Text that must be typed before the button is enabled. */
  readonly confirmText?: string;
  /**
   * Returns the message to show instead of the question when another page or program has deleted the resource. The dialog is redrawn when a
   * signal that this function reads changes.
   */
  readonly getDeletedMessage?: () => string | undefined;
  /** Runs while the dialog is open. The dialog closes when it succeeds. */
  readonly act: () => Promise<unknown>;
};

const openQuestion = signal<Question | undefined>(undefined);

/** Asks in a dialog and runs `act` if the user confirms. */
export const confirmAction = (newQuestion: Question): void => {
  openQuestion.value = newQuestion;
};

/** Renders the dialogs of `confirmAction`. Used once in the shell. */
export const ConfirmDialogs = () => {
  const { path } = useLocation();
  const openedOn = useRef(path);
  // Closes the dialog of a page that the user has left, for example with the Back button.
  useLayoutEffect(() => {
    if (openedOn.current !== path) openQuestion.value = undefined;
    openedOn.current = path;
  }, [path]);
  return openQuestion.value ? <ConfirmDialog key={openQuestion.value.title} question={openQuestion.value} /> : null;
};

const ConfirmDialog = ({ question }: { question: Question }) => {
  const problem = useRef(signal(""));
  const typed = useRef(signal(""));
  const close = (): void => {
    openQuestion.value = undefined;
  };
  const isActing = useRef(false);
  const act = async (): Promise<void> => {
    if (isActing.current) return;
    isActing.current = true;
    try {
      await question.act();
      close();
    } catch (error) {
      if (isNotFound(error)) {
        close();
        showNotFound(question.confirmText ?? "It");
      } else problem.current.value = formatError(error);
    } finally {
      isActing.current = false;
    }
  };
  const deletedMessage = question.getDeletedMessage?.();
  useEffect(() => {
    // A deletion by this dialog's own action needs no message.
    if (deletedMessage === undefined || isActing.current) return;
    close();
    showToast(deletedMessage);
  }, [deletedMessage]);
  const canAct = question.confirmText === undefined || typed.current.value === question.confirmText;
  return (
    <Dialog
      title={question.title}
      onClose={close}
      footer={
        <>
          <Button onPress={close}>{question.cancelLabel}</Button>
          <Button look={question.isDanger ? "danger primary" : "primary"} disabled={!canAct} onPress={act}>
            {question.confirmLabel}
          </Button>
        </>
      }
    >
      <div>{question.text}</div>
      {question.confirmText !== undefined && (
        <div class="field">
          <label for="ask-typed">Type {question.confirmText} to confirm</label>
          <input
            class="input"
            id="ask-typed"
            autocomplete="off"
            spellcheck={false}
            value={typed.current.value}
            onInput={writeTextTo(typed.current)}
            onKeyDown={({ key, isComposing }) => key === "Enter" && !isComposing && canAct && act()}
          />
        </div>
      )}
      {problem.current.value && (
        <p class="t-bad" role="alert">
          {problem.current.value}
        </p>
      )}
    </Dialog>
  );
};
