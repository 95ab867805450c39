// The message composer: text, dropped and pasted files, lines of a diff, completion of commands and paths. The draft is kept until it is
// sent.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatSize } from "#base/format-size.ts";
import type { InputPart } from "#schema/chats/chat-part.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { setTo } from "../../parts/handlers.ts";
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
  readonly onSend: (content: InputPart[], isInterrupting: boolean) => Promise<unknown>;
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
  const fileInput = useRef<HTMLInputElement>(null);
  const caret = useSignal(0);
  const chosenIndex = useSignal(0);
  const areOffersClosed = useSignal(false);
  const uploadCount = useSignal(0);
  const isDragOver = useSignal(false);
  const offers = areOffersClosed.value ? [] : listOffers(draft.text, caret.value, commands, props.files());

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

  const changeText = (text: string): void => {
    areOffersClosed.value = false;
    chosenIndex.value = 0;
    setDraft(draftKey, { ...getDraft(draftKey).value, text });
  };
  const attach = async (files: readonly File[]): Promise<void> => {
    uploadCount.value += files.length;
    for (const file of files) {
      await upload(organization, file)
        .then((created) => {
          const current = getDraft(draftKey).value;
          setDraft(draftKey, { ...current, files: [...current.files, created] });
        }, showError)
        .finally(() => {
          uploadCount.value -= 1;
        });
    }
  };
  const send = async (isInterrupting = false): Promise<void> => {
    const sentDraft = getDraft(draftKey).value;
    if (isEmptyDraft(sentDraft) || uploadCount.value > 0) return;
    const command = findCommand(sentDraft.text, commands);
    // The browser keeps the draft until the server has accepted it, so that a reload loses nothing.
    getDraft(draftKey).value = NO_DRAFT;
    try {
      await (command ? command() : onSend(toContent(sentDraft), isInterrupting));
    } catch (error) {
      // The server has not accepted the message: put it back in front of the text that was typed in the meantime.
      setDraft(draftKey, joinDrafts(sentDraft, getDraft(draftKey).value));
      throw error;
    }
    setDraft(draftKey, getDraft(draftKey).value);
  };
  const acceptOffer = (index: number): void => {
    const offer = offers[index];
    if (!offer) return;
    changeText(offer.replace(draft.text));
    areOffersClosed.value = true;
    area.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (offers.length > 0 && step !== 0) {
      event.preventDefault();
      chosenIndex.value = (chosenIndex.value + step + offers.length) % offers.length;
    } else if (offers.length > 0 && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) {
      event.preventDefault();
      const completeCommand = findCommand(draft.text, commands);
      if (completeCommand && event.key === "Enter" && offers[chosenIndex.value]?.label === draft.text.trim())
        void send().catch(showError);
      else acceptOffer(chosenIndex.value);
    } else if (event.key === "Tab" && event.shiftKey) {
      event.preventDefault();
      onNextMode();
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (offers.length > 0) areOffersClosed.value = true;
      else if (onInterrupt) void onInterrupt().catch(showError);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send(event.ctrlKey || event.metaKey).catch(showError);
    }
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    isDragOver.value = false;
    void attach([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <form
      class={isDragOver.value ? "composer over" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send().catch(showError);
      }}
      onDragOver={(event) => {
        event.preventDefault();
        isDragOver.value = true;
      }}
      onDragLeave={setTo(isDragOver, false)}
      onDrop={onDrop}
    >
      {offers.length > 0 && (
        <div class="menu offers up" id="offers" role="listbox" aria-label="Suggestions">
          {offers.map(({ label, note }, index) => (
            <button
              key={label}
              id={`offer-${index}`}
              type="button"
              role="option"
              tabIndex={-1}
              aria-selected={index === chosenIndex.value}
              onMouseDown={(event) => {
                event.preventDefault();
                acceptOffer(index);
              }}
            >
              <span class="mono clip">{label}</span>
              <span class="dim small">{note}</span>
            </button>
          ))}
        </div>
      )}
      <Attachments draftKey={draftKey} uploadCount={uploadCount.value} />
      <textarea
        ref={area}
        id={COMPOSER_ID}
        rows={1}
        enterkeyhint="send"
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={offers.length > 0 ? "offers" : undefined}
        aria-activedescendant={offers.length > 0 ? `offer-${chosenIndex.value}` : undefined}
        placeholder={isDragOver.value ? "Drop files here" : placeholder}
        value={draft.text}
        onInput={({ currentTarget }) => {
          caret.value = currentTarget.selectionStart;
          changeText(currentTarget.value);
        }}
        onSelect={({ currentTarget }) => {
          caret.value = currentTarget.selectionStart;
        }}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          void attach(files);
        }}
      />
      <div class="tools">
        <input
          ref={fileInput}
          type="file"
          multiple
          hidden
          onChange={({ currentTarget }) => {
            void attach([...(currentTarget.files ?? [])]);
            currentTarget.value = "";
          }}
        />
        <IconButton icon="clip" small label="Attach files" onPress={() => fileInput.current?.click()} />
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
            disabled={isEmptyDraft(draft) || uploadCount.value > 0}
          >
            <Icon name="up" />
          </button>
        </span>
      </div>
    </form>
  );
};

const Attachments = ({ draftKey, uploadCount }: { draftKey: string; uploadCount: number }) => {
  const draft = getDraft(draftKey).value;
  const { files, references } = draft;
  if (files.length + references.length + uploadCount === 0) return null;
  return (
    <div class="files">
      {references.map((one) => (
        <AttachmentChip
          key={`${one.file_name}:${one.start_line}`}
          label={`${one.file_name}:${one.start_line}`}
          remove={() => setDraft(draftKey, { ...draft, references: references.filter((other) => other !== one) })}
        />
      ))}
      {files.map((file) => (
        <AttachmentChip
          key={file.id}
          label={file.name}
          note={file.size > 0 ? formatSize(file.size) : ""}
          remove={() => setDraft(draftKey, { ...draft, files: files.filter((other) => other !== file) })}
        />
      ))}
      {uploadCount > 0 && (
        <span class="badge busy">Uploading {uploadCount === 1 ? "a file" : `${uploadCount} files`}</span>
      )}
    </div>
  );
};

const AttachmentChip = ({ label, note, remove }: { label: string; note?: string; remove: () => void }) => (
  <span class="badge">
    <Icon name="file" />
    {label}
    {note && <span class="dim">{note}</span>}
    <button type="button" class="badge-x" aria-label={`Remove ${label}`} onClick={remove}>
      <Icon name="x" small />
    </button>
  </span>
);
