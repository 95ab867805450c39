// The changes that the most recently used chat of a workspace made in its repositories, live.
import { useEffect } from "preact/hooks";
import { chats } from "../../data/chats.ts";
import { me } from "../../data/session.ts";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { parseFiles } from "../../parts/diff/diff-lines.ts";
import { Icon } from "../../parts/icon.tsx";
import { followGit, repositories } from "../chat/git.ts";

/** Number of files that are expanded by default. */
const OPEN = 3;

export const ChatChanges = ({ workspace }: { workspace: string }) => {
  const chat = [...chats.value.values()].find((one) => one.workspace_id === workspace && one.owner_id === me.value?.id);
  useEffect(() => (chat ? followGit(chat.id) : undefined), [chat?.id]);
  const changed = [...repositories.value.values()].filter(({ unified_diff }) => unified_diff !== "");
  if (!chat || changed.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="changed">
      <div class="head">
        <h2 id="changed">Changes</h2>
        <span class="push small">
          of <a href={`/chats/${chat.id}`}>{chat.title}</a>
        </span>
      </div>
      {changed.map(({ repo_root, branch, unified_diff }) => (
        <div key={repo_root} class="stack">
          <p class="line mono small clip" title={repo_root}>
            <Icon name="branch" small />
            {branch || "no branch"}
          </p>
          {parseFiles(unified_diff).map((file, at) => (
            <DiffFile key={file.path} file={file} isOpen={at < OPEN} />
          ))}
        </div>
      ))}
    </section>
  );
};
