// The changes of a chat by file, live. A comment on a line is sent to the chat together with the line.
import { useSignal } from "@preact/signals";
import type { GitRepository } from "#schema/agents/git-message.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Diff } from "../../parts/diff/diff.tsx";
import { FileHead } from "../../parts/diff/diff-file.tsx";
import { type DiffLine, type FileDiff, parseFiles } from "../../parts/diff/diff-lines.ts";
import { setTo, writeTextTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { gitProblem, repositories } from "./git.ts";
import type { LiveChat } from "./live-chat.ts";

/** Number of files that are expanded by default. */
const MAX_EXPANDED = 8;

export const listChangedFiles = (): readonly string[] => [
  ...new Set(
    [...repositories.value.values()].flatMap(({ unified_diff }) => parseFiles(unified_diff).map(({ path }) => path)),
  ),
];

export const Changes = ({ chat, isOwner }: { chat: LiveChat; isOwner: boolean }) => {
  const gitRepositories = [...repositories.value.values()];
  if (gitProblem.value !== "" && gitRepositories.length === 0) return <p class="pad mut">{gitProblem.value}</p>;
  if (gitRepositories.length === 0) {
    return <p class="pad mut">No changes yet. Edits that the chat makes in a git repository appear here.</p>;
  }
  return (
    <>
      {gitRepositories.map((one) => (
        <Repository key={one.repo_root} repository={one} chat={chat} isOwner={isOwner} />
      ))}
    </>
  );
};

type ChatProps = { readonly chat: LiveChat; readonly isOwner: boolean };

const Repository = ({ repository, chat, isOwner }: ChatProps & { repository: GitRepository }) => {
  const files = parseFiles(repository.unified_diff);
  const sumLines = (name: "added" | "removed"): number => files.reduce((total, file) => total + file[name], 0);
  return (
    <section aria-label={repository.repo_root}>
      <div class="line pad small">
        <span class="line mono clip" title={repository.repo_root}>
          <Icon name="branch" small />
          {repository.branch || "no branch"}
        </span>
        <span class="push num">
          {sumLines("added") > 0 && <span class="plus">+{sumLines("added")}</span>}{" "}
          {sumLines("removed") > 0 && <span class="minus">−{sumLines("removed")}</span>}
        </span>
      </div>
      {files.length === 0 && <p class="pad mut">No changes since the last commit.</p>}
      {files.map((file, index) => (
        <ChangedFile key={file.path} file={file} isInitiallyOpen={index < MAX_EXPANDED} chat={chat} isOwner={isOwner} />
      ))}
    </section>
  );
};

const ChangedFile = ({
  file,
  isInitiallyOpen,
  chat,
  isOwner,
}: ChatProps & { file: FileDiff; isInitiallyOpen: boolean }) => {
  const isOpen = useSignal(isInitiallyOpen);
  const pickedLine = useSignal<DiffLine | undefined>(undefined);
  const { path, lines } = file;
  // The diff is reloaded with each change, so lines are compared by their numbers.
  const isPicked = (one: DiffLine): boolean =>
    pickedLine.value !== undefined &&
    pickedLine.value.after === one.after &&
    pickedLine.value.before === one.before &&
    one.kind !== "hunk";
  const togglePick = (one: DiffLine): void => {
    pickedLine.value = isPicked(one) ? undefined : one;
  };
  return (
    <>
      <FileHead file={file} open={isOpen} />
      {isOpen.value && (
        <Diff
          label={`Diff of ${path}`}
          lines={lines}
          {...(isOwner ? { onPick: togglePick } : {})}
          renderNote={(one) =>
            isPicked(one) ? <Comment chat={chat} path={path} line={one} close={setTo(pickedLine, undefined)} /> : null
          }
        />
      )}
    </>
  );
};

const Comment = ({ chat, path, line, close }: { chat: LiveChat; path: string; line: DiffLine; close: () => void }) => {
  const comment = useSignal("");
  const number = line.after ?? line.before ?? 0;
  const sendComment = async (): Promise<void> => {
    const { queued } = await call("POST /chats/:chat/messages", {
      path: { chat: chat.id },
      body: {
        content: [
          { type: "file-reference", file_name: path, start_line: number, end_line: number, content: line.text },
          { type: "text", text: comment.value.trim() },
        ],
      },
    });
    showToast(queued ? "Queued. It is sent when the turn ends." : "Sent to the chat");
    close();
  };
  return (
    <div class="note-box">
      <textarea
        class="input"
        rows={2}
        aria-label={`Comment on line ${number} of ${path}`}
        ref={(element) => {
          if (element && comment.peek() === "") element.focus();
        }}
        value={comment.value}
        onInput={writeTextTo(comment)}
        onKeyDown={(event) => event.key === "Escape" && close()}
      />
      <p class="line">
        <Button small look="primary" disabled={comment.value.trim() === ""} onPress={sendComment}>
          Send to chat
        </Button>
        <Button small look="ghost" onPress={close}>
          Discard comment
        </Button>
      </p>
    </div>
  );
};
