// Dialogs on the browser's own <dialog>: focus stays inside, Escape closes, and the focus goes back to where it was.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { formatError, Problem } from "../data/api.ts";
import { say } from "../shell/toasts.tsx";
import { Button } from "./button.tsx";
import { textInto } from "./handlers.ts";

type DialogProps = {
  readonly title: string;
  /** Escape, the way out, or the end of the work. */
  readonly onClose: () => void;
  readonly class?: string;
  /** Without it, a button that closes. */
  readonly footer?: ComponentChildren;
  readonly children: ComponentChildren;
};

/**
 * Where the keyboard was before `box` opened; or the page, if that is gone with what was deleted. Anyone who has gone on in the meantime stays where they
 * are: Escape closes at once, and this comes a moment later.
 */
export const focusAgain = (before: Element | null, box: Element | null): void => {
  const now = document.activeElement;
  if (now && now !== document.body && !box?.contains(now)) return;
  const back = before?.isConnected && before !== document.body ? before : document.getElementById("main");
  // Where one reads stays where it is.
  if (back instanceof HTMLElement) back.focus({ preventScroll: true });
};

/** Open as long as it is drawn. */
export const Dialog = ({ title, onClose, class: more, footer, children }: DialogProps) => {
  const ref = useRef<HTMLDialogElement>(null);
  // A press alongside it closes it; not one that began inside, such as choosing words, and not with something typed.
  const isPressedBeside = useRef(false);
  const isTyped = useRef(false);
  useEffect(() => {
    const [before, box] = [document.activeElement, ref.current];
    box?.showModal();
    return () => focusAgain(before, box);
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

/** The server knows nothing at this address any more; what was typed and is unknown it names as a field. `call` reads the lists again. */
export const isGone = (error: unknown): boolean =>
  error instanceof Problem && (error.status === 404 || error.status === 410) && !error.body.validations?.length;

export const sayGone = (thing: string): void => say(`${thing} no longer exists, or you no longer have access to it`);

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
  /** What to say in its place once what it is about no longer exists, through another page or program; a signal that it reads draws it again. */
  readonly gone?: () => string | undefined;
  /** Done while the dialog is open; it closes when this succeeds. */
  readonly act: () => Promise<unknown>;
};

const question = signal<Question | undefined>(undefined);

/** Asks in a dialog and does it when the person says yes. */
export const ask = (asked: Question): void => {
  question.value = asked;
};

/** Draws what `ask` asks; once in the shell. */
export const Questions = () => {
  const { path } = useLocation();
  const from = useRef(path);
  // A question of the page that one has left, such as by the browser's own way back.
  useLayoutEffect(() => {
    if (from.current !== path) question.value = undefined;
    from.current = path;
  }, [path]);
  return question.value ? <Asked key={question.value.title} asked={question.value} /> : null;
};

const Asked = ({ asked }: { asked: Question }) => {
  const problem = useRef(signal(""));
  const typed = useRef(signal(""));
  const close = (): void => {
    question.value = undefined;
  };
  const isActing = useRef(false);
  const act = async (): Promise<void> => {
    isActing.current = true;
    try {
      await asked.act();
      close();
    } catch (error) {
      if (isGone(error)) {
        close();
        sayGone(asked.typed ?? "It");
      } else problem.current.value = formatError(error);
    } finally {
      isActing.current = false;
    }
  };
  const gone = asked.gone?.();
  useEffect(() => {
    // What goes because of the answer is no surprise.
    if (gone === undefined || isActing.current) return;
    close();
    say(gone);
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
