// The file browser of a running workspace: folders, file contents, upload by drop, and changes made by chats, live.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { formatSize } from "#base/format-size.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { DirectoryListing } from "#schema/agents/agent-files.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call } from "../../data/api.ts";
import { chats } from "../../data/chats.ts";
import { useResource } from "../../data/resource.ts";
import { me } from "../../data/session.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { parseFiles } from "../../parts/diff/diff-lines.ts";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { uploadFiles } from "../../parts/upload-files.ts";
import { followGit, repositories } from "../chat/git.ts";
import { FileText } from "./file-text.tsx";

// The changes that the most recently used chat of a workspace made in its repositories, live.

/** Number of files that are expanded by default. */
const MAX_EXPANDED = 3;

const ChatChanges = ({ workspace }: { workspace: string }) => {
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
            <DiffFile key={file.path} file={file} isOpen={at < MAX_EXPANDED} />
          ))}
        </div>
      ))}
    </section>
  );
};

type FilesProps = { readonly workspace: Workspace; readonly agent: WorkspaceAgent };

export const Files = ({ workspace, agent }: FilesProps) => {
  const { query, path: here } = useLocation();
  const folder = query.folder ?? ".";
  const path = { workspaceagent: agent.id };
  const { state, reload } = useResource(`files ${agent.id} ${folder}`, () =>
    call("GET /workspaceagents/:workspaceagent/files", { path, query: { path: folder } }),
  );
  const { data, error } = state.value;
  const to = (folder: string, file?: string): string =>
    `${here}?${new URLSearchParams(file === undefined ? { folder } : { folder, file })}`;
  return (
    <div class="stack loose">
      <ChatChanges workspace={workspace.id} />
      {error !== undefined && data === undefined ? (
        <Failed what="Can't load the folder" error={error} reload={reload} />
      ) : data ? (
        <Folder agent={agent.id} listing={data} to={to} reload={reload} />
      ) : (
        <Skeleton lines={8} />
      )}
      {query.file && <FileText key={query.file} agent={agent.id} path={query.file} close={to(folder)} />}
    </div>
  );
};

type FolderProps = {
  readonly agent: string;
  readonly listing: DirectoryListing;
  readonly to: (folder: string, file?: string) => string;
  readonly reload: () => Promise<void>;
};

const Folder = ({ agent, listing, to, reload }: FolderProps) => {
  const { absolute_path, contents, truncated } = listing;
  const isOver = useSignal(false);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const reloadIfVisible = (): void => void (document.hidden || reload());
    document.addEventListener("visibilitychange", reloadIfVisible);
    return () => document.removeEventListener("visibilitychange", reloadIfVisible);
  }, [absolute_path]);
  const uploadHere = (files: FileList | null | undefined): void =>
    void uploadFiles(agent, { folder: absolute_path }, [...(files ?? [])], reload);
  // Folders first, each by name.
  const sorted = contents.toSorted((a, b) => Number(b.is_dir) - Number(a.is_dir));
  return (
    <section
      class="panel"
      aria-labelledby="folder"
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => {
        isOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        uploadHere(event.dataTransfer?.files);
      }}
    >
      <header>
        <h2 id="folder" class="crumbs mono">
          <Crumbs path={absolute_path} to={to} />
        </h2>
        <span class="push line">
          <input
            class="vh"
            type="file"
            multiple
            tabIndex={-1}
            aria-label="Files to upload"
            ref={picker}
            onChange={(event) => {
              uploadHere(event.currentTarget.files);
              event.currentTarget.value = "";
            }}
          />
          <Button small icon="up" onPress={() => picker.current?.click()}>
            Upload
          </Button>
          <Button small onPress={reload}>
            Refresh
          </Button>
        </span>
      </header>
      {contents.length === 0 && (
        <Empty icon="file" title="The folder is empty" text="Drop files here to upload them." />
      )}
      <ul class="list flush" aria-label="Files">
        {sorted.map(({ name, absolute_path: path, is_dir, size }) => (
          <li key={name}>
            <a class="item" href={is_dir ? to(path) : to(absolute_path, path)}>
              <span class="line">
                <span class={is_dir ? "t-accent" : "dim"}>
                  <Icon name={is_dir ? "box" : "file"} />
                </span>
                <span class={is_dir ? "med clip" : "clip"}>{name}</span>
              </span>
              <span class="dim small num">{is_dir ? "" : formatSize(size)}</span>
            </a>
          </li>
        ))}
      </ul>
      {truncated && <p class="pad mut">This folder has more files. Open a terminal to see all of them.</p>}
      {isOver.value && <p class="drop-here">Drop to upload into this folder</p>}
    </section>
  );
};

/** The breadcrumbs of a folder, each a link. */
const Crumbs = ({ path, to }: { path: string; to: FolderProps["to"] }) => {
  const steps = path.split("/").filter(Boolean);
  return (
    <>
      <a href={to("/")}>/</a>
      {steps.map((step, at) => (
        <span key={`${at} ${step}`}>
          {at > 0 && <span class="dim">/</span>}
          <a
            href={to(`/${steps.slice(0, at + 1).join("/")}`)}
            aria-current={at === steps.length - 1 ? "true" : undefined}
          >
            {step}
          </a>
        </span>
      ))}
    </>
  );
};

type NoFilesProps = { readonly title: string; readonly start: (() => unknown) | undefined };

export const NoFiles = ({ title, start }: NoFilesProps) => (
  <Empty
    icon="file"
    title={title}
    text={start ? "Start the workspace to browse its files." : "Its files are shown when its agent is connected."}
  >
    {start ? (
      <Button look="primary" icon="play" onPress={start}>
        Start
      </Button>
    ) : (
      <ButtonLink href="/workspaces">All workspaces</ButtonLink>
    )}
  </Empty>
);
