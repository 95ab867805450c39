// The editor for the files of the active version. Changes become a new version, which is tested before it is promoted.
import { type Signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { call, callServer } from "../../data/api.ts";
import { loadCode } from "../../data/load-code.ts";
import { useResource } from "../../data/resource.ts";
import { makeTar, type TarEntry } from "../../data/tar.ts";
import { makeDiff, readVersionFiles, type VersionFiles } from "../../data/version-files.ts";
import { adoptSheet } from "../../parts/adopt-sheet.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { DiffFile } from "../../parts/diff/diff-file.tsx";
import { type FileDiff, parseFiles } from "../../parts/diff/diff-lines.ts";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Area, Field } from "../../parts/field.tsx";
import { textInto } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError } from "../../shell/toasts.tsx";
import { upload } from "../templates/pack.ts";
import type { CodeEditor } from "./code-editor.ts";
import { type Draft, readDraft, storeDraft } from "./draft.ts";
import rules from "./editor.css" with { type: "text" };
import { Trial } from "./trial.tsx";
import { OtherActive } from "./version-conflict.tsx";

adoptSheet(rules);

type EditorProps = {
  readonly template: Template;
  readonly active: TemplateVersion | undefined;
  readonly reload: () => Promise<void>;
};

export default function Editor({ template, active: newest, reload }: EditorProps) {
  const isChanged = useSignal(false);
  // The user's changes stay based on this version, even if another version is promoted.
  const baseVersion = useRef(newest);
  if (!isChanged.value) baseVersion.current = newest;
  const active = baseVersion.current;
  const { state, reload: readAgain } = useResource(active && `files ${active.job.file_id}`, () =>
    readVersionFiles(active?.job.file_id ?? ""),
  );
  const { data, error } = state.value;
  if (error && !data) return <Failed what="Can't load the files" error={error} reload={readAgain} />;
  if (!data || !active) return <Skeleton lines={8} />;
  /** Applies the same changes to the files of the version that is active now. */
  const move = (): void => {
    if (newest) storeDraft(newest.id, readDraft(active.id));
    storeDraft(active.id, {});
    isChanged.value = false;
  };
  return (
    <>
      {newest && newest.id !== active.id && (
        <OtherActive template={template} baseVersion={active} active={newest}>
          <Button small onPress={move}>
            Apply my changes to {newest.name}
          </Button>
        </OtherActive>
      )}
      <Files key={active.id} template={template} active={active} files={data} isChanged={isChanged} reload={reload} />
    </>
  );
}

type FilesProps = {
  template: Template;
  active: TemplateVersion;
  files: VersionFiles;
  isChanged: Signal<boolean>;
  reload: () => Promise<void>;
};

const encoder = new TextEncoder();

/** Returns the files with the draft applied. */
const applyDraft = (files: VersionFiles, draft: Draft): VersionFiles => {
  const all = new Map(files);
  for (const [path, text] of Object.entries(draft)) {
    if (text === null) all.delete(path);
    else all.set(path, { bytes: encoder.encode(text), text });
  }
  return new Map([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
};

const FIRST_FILES = ["template.yaml", "main.tf"];

const Files = ({ template, active, files, isChanged, reload }: FilesProps) => {
  const draft = useSignal<Draft>(readDraft(active.id));
  const all = useComputed(() => applyDraft(files, draft.value));
  const chosen = useSignal(FIRST_FILES.find((path) => files.has(path)) ?? [...files.keys()][0] ?? "");
  /** Increments when the editor must be refilled. */
  const filled = useSignal(0);
  const dialog = useSignal<"" | "add" | "rename" | "save">("");
  const begun = useSignal<TemplateVersion | undefined>(undefined);
  const change = (path: string, text: string | null): void => {
    const { [path]: _, ...others } = draft.value;
    const isAsBefore = text === null ? !files.has(path) : files.get(path)?.text === text;
    draft.value = isAsBefore ? others : { ...others, [path]: text };
    storeDraft(active.id, draft.value);
  };
  const changedCount = Object.keys(draft.value).length;
  useEffect(() => {
    isChanged.value = changedCount > 0;
  }, [changedCount]);
  const file = all.value.get(chosen.value);
  const open = (path: string): void => {
    chosen.value = path;
    filled.value += 1;
  };
  const save = (): void => {
    if (changedCount > 0) dialog.value = "save";
  };
  const remove = (): void => {
    change(chosen.value, null);
    open([...all.value.keys()][0] ?? "");
  };
  return (
    <>
      <div class="line wrap editor-bar">
        <span class="dim small num" role="status">
          {changedCount === 0
            ? `Version ${active.name}`
            : `${changedCount} ${changedCount === 1 ? "file" : "files"} changed since ${active.name}`}
        </span>
        <span class="push line">
          {changedCount > 0 && (
            <Button
              look="ghost"
              onPress={() => {
                draft.value = {};
                storeDraft(active.id, {});
                open(files.has(chosen.value) ? chosen.value : ([...files.keys()][0] ?? ""));
              }}
            >
              Discard changes
            </Button>
          )}
          <Button look="primary" keys="Ctrl S" disabled={changedCount === 0} onPress={save}>
            Save as new version…
          </Button>
        </span>
      </div>
      <div class="editor">
        <nav class="editor-files" aria-label="Files">
          <p class="line">
            <span class="dim small">Files</span>
            <span class="push line">
              <IconButton icon="plus" small label="Add file" onPress={() => (dialog.value = "add")} />
              <IconButton
                icon="pen"
                small
                label={`Rename ${chosen.value}`}
                disabled={file?.text === undefined}
                onPress={() => (dialog.value = "rename")}
              />
              <IconButton
                icon="trash"
                small
                label={`Remove ${chosen.value}`}
                disabled={file === undefined}
                onPress={remove}
              />
            </span>
          </p>
          <ul>
            {[...all.value.keys()].map((path) => (
              <li key={path}>
                <button
                  type="button"
                  class="btn ghost"
                  aria-current={path === chosen.value ? "true" : undefined}
                  onClick={() => open(path)}
                >
                  <Icon name="file" />
                  <span class="clip">{path}</span>
                  {path in draft.value && <span class="badge busy">changed</span>}
                </button>
              </li>
            ))}
          </ul>
        </nav>
        {file === undefined ? (
          <Empty icon="file" title="No file" text="Add a file. A template needs a template.yaml or Terraform files." />
        ) : file.text === undefined ? (
          <Empty icon="file" title="This is not a text file" text="The template keeps it unchanged." />
        ) : (
          <Code
            key={`${chosen.value} ${filled.value}`}
            path={chosen.value}
            text={file.text}
            changed={(text) => change(chosen.value, text)}
            save={save}
          />
        )}
      </div>
      {(dialog.value === "add" || dialog.value === "rename") && (
        <NameFile
          title={dialog.value === "add" ? "Add file" : `Rename ${chosen.value}`}
          first={dialog.value === "add" ? "" : chosen.value}
          taken={all.value}
          close={() => (dialog.value = "")}
          done={(path) => {
            const text = dialog.value === "add" ? "" : (file?.text ?? "");
            if (dialog.value === "rename") change(chosen.value, null);
            change(path, text);
            dialog.value = "";
            open(path);
          }}
        />
      )}
      {dialog.value === "save" && (
        <Save
          active={active}
          template={template}
          before={files}
          after={all.value}
          close={() => (dialog.value = "")}
          saved={(version) => {
            dialog.value = "";
            begun.value = version;
          }}
        />
      )}
      {begun.value && (
        <Trial
          template={template}
          begun={begun.value}
          onClose={(activated) => {
            begun.value = undefined;
            // The draft is complete once promoted; otherwise it still needs fixing.
            if (activated) {
              storeDraft(active.id, {});
              isChanged.value = false;
            }
            void reload();
          }}
        />
      )}
    </>
  );
};

type CodeProps = { path: string; text: string; changed: (text: string) => void; save: () => void };

const Code = ({ path, text, changed, save }: CodeProps) => {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef({ changed, save });
  latest.current = { changed, save };
  useEffect(() => {
    let editor: CodeEditor | undefined;
    let isOver = false;
    const ready = loadCode(() => import("./code-editor.ts")).then(({ CodeEditor }) => {
      if (isOver || !box.current) return;
      editor = new CodeEditor(box.current, {
        path,
        text,
        isReadOnly: false,
        changed: (next) => latest.current.changed(next),
        save: () => latest.current.save(),
      });
    });
    ready.catch(() => showError(new Error("Can't load the editor. Reload the page; your changes are kept.")));
    return () => {
      isOver = true;
      editor?.end();
    };
  }, []);
  return <div ref={box} class="editor-code" />;
};

/** Returns the error of a path; it must be below the template's folder. */
const validatePath = (path: string, taken: VersionFiles): string => {
  if (path === "") return "";
  if (path.startsWith("/") || path.split("/").some((part) => part === "" || part === "." || part === ".."))
    return "Enter a path inside the template's folder, such as scripts/start.sh.";
  return taken.has(path) ? "A file with this name already exists." : "";
};

type NameProps = {
  title: string;
  first: string;
  taken: VersionFiles;
  close: () => void;
  done: (path: string) => void;
};

const NameFile = ({ title, first, taken, close, done }: NameProps) => {
  const path = useSignal(first);
  const problem = path.value === first ? "" : validatePath(path.value, taken);
  const mayDo = path.value !== "" && path.value !== first && problem === "";
  return (
    <Dialog
      title={title}
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" disabled={!mayDo} onPress={() => done(path.value)}>
            {first === "" ? "Add file" : "Rename file"}
          </Button>
        </>
      }
    >
      <Field
        label="Path"
        value={path.value}
        error={problem || undefined}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="none"
        onInput={(event) => {
          path.value = event.currentTarget.value.trim();
        }}
        onKeyDown={(event) => event.key === "Enter" && mayDo && done(path.value)}
      />
    </Dialog>
  );
};

type SaveProps = {
  template: Template;
  /** The version that was changed. */
  active: TemplateVersion;
  before: VersionFiles;
  after: VersionFiles;
  close: () => void;
  saved: (version: TemplateVersion) => void;
};

const Save = ({ template, active, before, after, close, saved }: SaveProps) => {
  const message = useSignal("");
  const changes = useSignal<readonly FileDiff[]>([]);
  /** Another version that someone has promoted. */
  const other = useSignal("");
  useEffect(() => {
    void callServer("GET /templates/:template", { path: { template: template.id } })
      .then(async ({ active_version_id }) => {
        if (active_version_id === active.id) return;
        const path = { templateversion: active_version_id };
        other.value = (await call("GET /templateversions/:templateversion", { path })).name;
      })
      .catch(() => {});
    void makeDiff(before, after).then((diff) => {
      changes.value = parseFiles(diff);
    });
  }, []);
  const save = async (): Promise<void> => {
    const entries: TarEntry[] = [...after].map(([path, { bytes }]) => ({ path, bytes }));
    const file_id = await upload(makeTar(entries));
    const body = { file_id, template_id: template.id, message: message.value.trim() };
    const path = { organization: template.organization_id };
    saved(await call("POST /organizations/:organization/templateversions", { path, body }));
  };
  return (
    <Dialog
      title="Save as new version"
      class="wide"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Keep editing</Button>
          <Button look="primary" onPress={save}>
            Save and import
          </Button>
        </>
      }
    >
      <div class="stack">
        {other.value && (
          <p class="banner box attn" role="alert">
            <span>
              {other.value} became the active version while you were editing. Your changes are based on {active.name}{" "}
              and don't include it.
            </span>
          </p>
        )}
        <Area
          label="Message"
          value={message.value}
          hint="Workspaces use the previous version until you promote this one."
          onInput={textInto(message)}
        />
        {changes.value.map((file) => (
          <DiffFile key={file.path} file={file} isOpen />
        ))}
      </div>
    </Dialog>
  );
};
