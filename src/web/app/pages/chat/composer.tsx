// The message composer: text, dropped and pasted files, lines of a diff, completion of commands and paths. The draft is kept until it is
// sent.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { InputPart } from "#schema/chats/chat-part.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { sets } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { showError } from "../../shell/toasts.tsx";
import { COMPOSER_ID } from "./actions.ts";
import { getDraft, isEmptyDraft, joinDrafts, NO_DRAFT, setDraft, toContent, upload } from "./draft.ts";
import { type Command, findCommand, listOffers } from "./suggest.ts";

type ComposerProps = {
  /** The chat's ID, or `new`. */
  readonly draftKey: string;
  readonly organization: string;
  readonly placeholder: string;
  readonly sendLabel: string;
  readonly commands: readonly Command[];
  readonly files: () => readonly string[];
  readonly onSend: (content: InputPart[], interrupts: boolean) => Promise<unknown>;
  /** Set while a turn can be interrupted. */
  readonly onInterrupt?: () => Promise<unknown>;
  /** Called for Shift+Tab. */
  readonly onNextMode: () => void;
  /** The controls for model and effort. */
  readonly children: ComponentChildren;
};

export const Composer = (props: ComposerProps) => {
  const { draftKey, organization, placeholder, sendLabel, commands, onSend, onInterrupt, onNextMode } = props;
  const draft = getDraft(draftKey).value;
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const caret = useSignal(0);
  const chosen = useSignal(0);
  const isClosed = useSignal(false);
  const uploading = useSignal(0);
  const isOver = useSignal(false);
  const offers = isClosed.value ? [] : listOffers(draft.text, caret.value, commands, props.files());

  useEffect(() => {
    area.current?.focus({ preventScroll: true });
  }, [draftKey]);
  useEffect(() => {
    const box = area.current;
    // An empty box has its default height. Measuring it would force a layout of the page.
    if (!box || (draft.text === "" && box.style.blockSize === "")) return;
    // Grows with its text, up to a third of the page.
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight, innerHeight / 3)}px`;
  }, [draft.text]);

  const change = (text: string): void => {
    isClosed.value = false;
    chosen.value = 0;
    setDraft(draftKey, { ...getDraft(draftKey).value, text });
  };
  const attach = async (files: readonly File[]): Promise<void> => {
    uploading.value += files.length;
    for (const file of files) {
      await upload(organization, file)
        .then((created) => {
          const now = getDraft(draftKey).value;
          setDraft(draftKey, { ...now, files: [...now.files, created] });
        }, showError)
        .finally(() => {
          uploading.value -= 1;
        });
    }
  };
  const send = async (interrupts = false): Promise<void> => {
    const now = getDraft(draftKey).value;
    if (isEmptyDraft(now) || uploading.value > 0) return;
    const command = findCommand(now.text, commands);
    // The browser keeps the draft until the server has accepted it, so that a reload loses nothing.
    getDraft(draftKey).value = NO_DRAFT;
    try {
      await (command ? command() : onSend(toContent(now), interrupts));
    } catch (error) {
      // The server has not accepted the message: put it back in front of the text that was typed in the meantime.
      setDraft(draftKey, joinDrafts(now, getDraft(draftKey).value));
      throw error;
    }
    setDraft(draftKey, getDraft(draftKey).value);
  };
  const acceptOffer = (at: number): void => {
    const offer = offers[at];
    if (!offer) return;
    change(offer.replace(draft.text));
    isClosed.value = true;
    area.current?.focus();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (offers.length > 0 && step !== 0) {
      event.preventDefault();
      chosen.value = (chosen.value + step + offers.length) % offers.length;
    } else if (offers.length > 0 && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      event.preventDefault();
      const whole = findCommand(draft.text, commands);
      if (whole && event.key === "Enter" && offers[chosen.value]?.label === draft.text.trim())
        void send().catch(showError);
      else acceptOffer(chosen.value);
    } else if (event.key === "Tab" && event.shiftKey) {
      event.preventDefault();
      onNextMode();
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (offers.length > 0) isClosed.value = true;
      else if (onInterrupt) void onInterrupt().catch(showError);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send(event.ctrlKey || event.metaKey).catch(showError);
    }
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    isOver.value = false;
    void attach([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <form
      class={isOver.value ? "composer over" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send().catch(showError);
      }}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={sets(isOver, false)}
      onDrop={drop}
    >
      {offers.length > 0 && (
        <div class="menu offers up" id="offers" role="listbox" aria-label="Suggestions">
          {offers.map(({ label, note }, at) => (
            <button
              key={label}
              id={`offer-${at}`}
              type="button"
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen.value}
              onMouseDown={(event) => {
                event.preventDefault();
                acceptOffer(at);
              }}
            >
              <span class="mono clip">{label}</span>
              <span class="dim small">{note}</span>
            </button>
          ))}
        </div>
      )}
      <Attachments draftKey={draftKey} uploading={uploading.value} />
      <textarea
        ref={area}
        id={COMPOSER_ID}
        rows={1}
        enterkeyhint="send"
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={offers.length > 0 ? "offers" : undefined}
        aria-activedescendant={offers.length > 0 ? `offer-${chosen.value}` : undefined}
        placeholder={isOver.value ? "Drop files here" : placeholder}
        value={draft.text}
        onInput={({ currentTarget }) => {
          caret.value = currentTarget.selectionStart;
          change(currentTarget.value);
        }}
        onSelect={({ currentTarget }) => {
          caret.value = currentTarget.selectionStart;
        }}
        onKeyDown={press}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          void attach(files);
        }}
      />
      <div class="tools">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={({ currentTarget }) => {
            void attach([...(currentTarget.files ?? [])]);
            currentTarget.value = "";
          }}
        />
        <IconButton icon="clip" small label="Attach files" onPress={() => picker.current?.click()} />
        {props.children}
        <span class="push line">
          {onInterrupt && (
            <Button small icon="stop" keys="Escape" label="Interrupt" onPress={onInterrupt}>
              <span class="desk">Interrupt</span>
            </Button>
          )}
          <button
            type="submit"
            class="btn primary icon sm"
            aria-label={sendLabel}
            title={sendLabel}
            disabled={isEmptyDraft(draft) || uploading.value > 0}
          >
            <Icon name="up" />
          </button>
        </span>
      </div>
    </form>
  );
};

const Attachments = ({ draftKey, uploading }: { draftKey: string; uploading: number }) => {
  const draft = getDraft(draftKey).value;
  const { files, references } = draft;
  if (files.length + references.length + uploading === 0) return null;
  return (
    <div class="files">
      {references.map((one) => (
        <Chip
          key={`${one.file_name}:${one.start_line}`}
          label={`${one.file_name}:${one.start_line}`}
          remove={() => setDraft(draftKey, { ...draft, references: references.filter((other) => other !== one) })}
        />
      ))}
      {files.map((file) => (
        <Chip
          key={file.id}
          label={file.name}
          note={file.size > 0 ? formatSize(file.size) : ""}
          remove={() => setDraft(draftKey, { ...draft, files: files.filter((other) => other !== file) })}
        />
      ))}
      {uploading > 0 && <span class="badge busy">Uploading {uploading === 1 ? "a file" : `${uploading} files`}</span>}
    </div>
  );
};

const Chip = ({ label, note, remove }: { label: string; note?: string; remove: () => void }) => (
  <span class="badge">
    <Icon name="file" />
    {label}
    {note && <span class="dim">{note}</span>}
    <button type="button" class="badge-x" aria-label={`Remove ${label}`} onClick={remove}>
      <Icon name="x" small />
    </button>
  </span>
);
