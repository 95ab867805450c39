// Dialogs based on the browser's <dialog>: the focus stays inside, Escape closes, and the focus returns to where it was.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { formatError, Problem } from "../data/api.ts";
import { showToast } from "../shell/toasts.tsx";
import { Button } from "./button.tsx";
import { textInto } from "./handlers.ts";

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
export const restoreFocus = (before: Element | null, box: Element | null): void => {
  const now = document.activeElement;
  if (now && now !== document.body && !box?.contains(now)) return;
  const back = before?.isConnected && before !== document.body ? before : document.getElementById("main");
  // Keeps the scroll position.
  if (back instanceof HTMLElement) back.focus({ preventScroll: true });
};

/** The dialog is open while it is mounted. */
export const Dialog = ({ title, onClose, class: more, footer, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  // A click outside closes the dialog, unless it began inside (such as selecting text) or something was typed.
  const isPressedBeside = useRef(false);
  const isTyped = useRef(false);
  useEffect(() => {
    const [before, box] = [document.activeElement, ref.current];
    box?.showModal();
    return () => restoreFocus(before, box);
  }, []);
  return (
    <dialog
      ref={ref}
      class={["dialog", more].filter(Boolean).join(" ")}
      aria-label={title}
      onClose={onClose}
      onPointerDown={({ target }) => {
        isPressedBeside.current = target === ref.current;
      }}
      onInput={() => {
        isTyped.current = true;
      }}
      onClick={({ target }) =>
        target === ref.current && isPressedBeside.current && !isTyped.current && ref.current?.close()
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
 * True if the resource no longer exists. An unknown value that the user typed is reported as a field error instead. `call` reloads the
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
  readonly yes: string;
  /** The alternative: Keep it. */
  readonly no: string;
  readonly isDanger?: boolean;
  /** Text that must be typed before the button is enabled. */
  readonly typed?: string;
  /**
   * Returns the message to show instead of the question when another page or program has deleted the resource. The dialog is redrawn when a
   * signal that this function reads changes.
   */
  readonly gone?: () => string | undefined;
  /** Runs while the dialog is open. The dialog closes when it succeeds. */
  readonly act: () => Promise<unknown>;
};

const question = signal<Question | undefined>(undefined);

/** Asks in a dialog and runs `act` if the user confirms. */
export const confirmAction = (requested: Question): void => {
  question.value = requested;
};

/** Renders the dialogs of `ask`. Used once in the shell. */
export const Questions = () => {
  const { path } = useLocation();
  const from = useRef(path);
  // Closes the dialog of a page that the user has left, for example with the Back button.
  useLayoutEffect(() => {
    if (from.current !== path) question.value = undefined;
    from.current = path;
  }, [path]);
  return question.value ? <ConfirmDialog key={question.value.title} asked={question.value} /> : null;
};

const ConfirmDialog = ({ asked }: { asked: Question }) => {
  const problem = useRef(signal(""));
  const typed = useRef(signal(""));
  const close = (): void => {
    question.value = undefined;
  };
  const isActing = useRef(false);
  const act = async (): Promise<void> => {
    if (isActing.current) return;
    isActing.current = true;
    try {
      await asked.act();
      close();
    } catch (error) {
      if (isNotFound(error)) {
        close();
        showNotFound(asked.typed ?? "It");
      } else problem.current.value = formatError(error);
    } finally {
      isActing.current = false;
    }
  };
  const gone = asked.gone?.();
  useEffect(() => {
    // A deletion by this dialog's own action needs no message.
    if (gone === undefined || isActing.current) return;
    close();
    showToast(gone);
  }, [gone]);
  const mayAct = asked.typed === undefined || typed.current.value === asked.typed;
  return (
    <Dialog
      title={asked.title}
      onClose={close}
      footer={
        <>
          <Button onPress={close}>{asked.no}</Button>
          <Button look={asked.isDanger ? "danger primary" : "primary"} disabled={!mayAct} onPress={act}>
            {asked.yes}
          </Button>
        </>
      }
    >
      <div>{asked.text}</div>
      {asked.typed !== undefined && (
        <div class="field">
          <label for="ask-typed">Type {asked.typed} to confirm</label>
          <input
            class="input"
            id="ask-typed"
            autocomplete="off"
            spellcheck={false}
            value={typed.current.value}
            onInput={textInto(typed.current)}
            onKeyDown={({ key, isComposing }) => key === "Enter" && !isComposing && mayAct && act()}
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
