// Dialogs on the browser's own <dialog>: focus stays inside, Escape closes, and the focus goes back to where it was.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { wordsOf } from "../data/api.ts";
import { Button } from "./button.tsx";
import { textInto } from "./handlers.ts";

type DialogProps = {
  readonly title: string;
  /** Escape, the way out, or the end of the work. */
  readonly onClose: () => void;
  readonly class?: string;
  readonly footer?: ComponentChildren;
  readonly children: ComponentChildren;
};

/** Open as long as it is drawn. */
export const Dialog = ({ title, onClose, class: more, footer, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => {
      // What was pressed may be gone with what was deleted; the keyboard goes on from the page.
      const back = before?.isConnected ? before : document.getElementById("main");
      if (back instanceof HTMLElement) back.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={["dialog", more].filter(Boolean).join(" ")}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && ref.current?.close()}
    >
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body">{children}</div>
      {footer && <footer>{footer}</footer>}
    </dialog>
  );
};

type Question = {
  readonly title: string;
  /** What happens, in a sentence. */
  readonly text: ComponentChildren;
  /** The verb and the thing: Delete workspace. */
  readonly yes: string;
  /** What stays: Keep it. */
  readonly no: string;
  readonly isDanger?: boolean;
  /** Must be typed before the button can be pressed. */
  readonly typed?: string;
  /** Done while the dialog is open; it closes when this succeeds. */
  readonly act: () => Promise<unknown>;
};

const question = signal<Question | undefined>(undefined);

/** Asks in a dialog and does it when the person says yes. */
export const ask = (asked: Question): void => {
  question.value = asked;
};

/** Draws what `ask` asks; once in the shell. */
export const Questions = () => (question.value ? <Asked key={question.value.title} asked={question.value} /> : null);

const Asked = ({ asked }: { asked: Question }) => {
  const problem = useRef(signal(""));
  const typed = useRef(signal(""));
  const close = (): void => {
    question.value = undefined;
  };
  const act = async (): Promise<void> => {
    try {
      await asked.act();
      close();
    } catch (error) {
      problem.current.value = wordsOf(error);
    }
  };
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
