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
  const changedRepositories = [...repositories.value.values()].filter(({ unified_diff }) => unified_diff !== "");
  if (!chat || changedRepositories.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="changed">
      <div class="head">
        <h2 id="changed">Changes</h2>
        <span class="push small">
          of <a href={`/chats/${chat.id}`}>{chat.title}</a>
        </span>
      </div>
      {changedRepositories.map(({ repo_root, branch, unified_diff }) => (
        <div key={repo_root} class="stack">
          <p class="line mono small clip" title={repo_root}>
            <Icon name="branch" small />
            {branch || "no branch"}
          </p>
          {parseFiles(unified_diff).map((file, index) => (
            <DiffFile key={file.path} file={file} isOpen={index < MAX_EXPANDED} />
          ))}
        </div>
      ))}
    </section>
  );
};

type FilesProps = { readonly workspace: Workspace; readonly agent: WorkspaceAgent };

export const Files = ({ workspace, agent }: FilesProps) => {
  const { query, path: currentPath } = useLocation();
  const folder = query.folder ?? ".";
  const path = { workspaceagent: agent.id };
  const { state, reload } = useResource(`files ${agent.id} ${folder}`, () =>
    call("GET /workspaceagents/:workspaceagent/files", { path, query: { path: folder } }),
  );
  const { data, error } = state.value;
  const toHref = (folder: string, file?: string): string =>
    `${currentPath}?${new URLSearchParams(file === undefined ? { folder } : { folder, file })}`;
  return (
    <div class="stack loose">
      <ChatChanges workspace={workspace.id} />
      {error !== undefined && data === undefined ? (
        <Failed title="Can't load the folder" error={error} reload={reload} />
      ) : data ? (
        <Folder agent={agent.id} listing={data} toHref={toHref} reload={reload} />
      ) : (
        <Skeleton lines={8} />
      )}
      {query.file && <FileText key={query.file} agent={agent.id} path={query.file} closeHref={toHref(folder)} />}
    </div>
  );
};

type FolderProps = {
  readonly agent: string;
  readonly listing: DirectoryListing;
  readonly toHref: (folder: string, file?: string) => string;
  readonly reload: () => Promise<void>;
};

const Folder = ({ agent, listing, toHref, reload }: FolderProps) => {
  const { absolute_path, contents, truncated } = listing;
  const isDragOver = useSignal(false);
  const fileInput = useRef<HTMLInputElement>(null);
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
        isDragOver.value = true;
      }}
      onDragLeave={() => {
        isDragOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isDragOver.value = false;
        uploadHere(event.dataTransfer?.files);
      }}
    >
      <header>
        <h2 id="folder" class="crumbs mono">
          <Crumbs path={absolute_path} toHref={toHref} />
        </h2>
        <span class="push line">
          <input
            class="vh"
            type="file"
            multiple
            tabIndex={-1}
            aria-label="Files to upload"
            ref={fileInput}
            onChange={(event) => {
              uploadHere(event.currentTarget.files);
              event.currentTarget.value = "";
            }}
          />
          <Button small icon="up" onPress={() => fileInput.current?.click()}>
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
            <a class="item" href={is_dir ? toHref(path) : toHref(absolute_path, path)}>
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
      {isDragOver.value && <p class="drop-here">Drop to upload into this folder</p>}
    </section>
  );
};

/** The breadcrumbs of a folder, each a link. */
const Crumbs = ({ path, toHref }: { path: string; toHref: FolderProps["toHref"] }) => {
  const names = path.split("/").filter(Boolean);
  return (
    <>
      <a href={toHref("/")}>/</a>
      {names.map((name, index) => (
        <span key={`${index} ${name}`}>
          {index > 0 && <span class="dim">/</span>}
          <a
            href={toHref(`/${names.slice(0, index + 1).join("/")}`)}
            aria-current={index === names.length - 1 ? "true" : undefined}
          >
            {name}
          </a>
        </span>
      ))}
    </>
  );
};

type NoFilesProps = { readonly title: string; readonly onStart: (() => unknown) | undefined };

export const NoFiles = ({ title, onStart }: NoFilesProps) => (
  <Empty
    icon="file"
    title={title}
    text={onStart ? "Start the workspace to browse its files." : "Its files are shown when its agent is connected."}
  >
    {onStart ? (
      <Button look="primary" icon="play" onPress={onStart}>
        Start
      </Button>
    ) : (
      <ButtonLink href="/workspaces">All workspaces</ButtonLink>
    )}
  </Empty>
);
