// One file of a diff, which can be collapsed.
import { type Signal, useSignal } from "@preact/signals";
import { escapeInvisible } from "#base/visible-text.ts";
import { Icon } from "../icon.tsx";
import { Diff } from "./diff.tsx";
import type { FileDiff } from "./diff-lines.ts";

/** The button that expands a file: its name, the kind of change, and the number of lines. */
export const FileHead = ({ file, open }: { file: FileDiff; open: Signal<boolean> }) => {
  const { path, kind, added, removed } = file;
  return (
    <button
      type="button"
      class="file"
      aria-expanded={open.value}
      onClick={() => {
        open.value = !open.value;
      }}
    >
      <Icon name={open.value ? "down" : "chev"} small />
      <span class="mono clip">{escapeInvisible(path)}</span>
      {kind !== "changed" && <span class={kind === "new" ? "badge ok" : "badge"}>{kind}</span>}
      <span class="push line small num">
        {added > 0 && <span class="plus">+{added}</span>}
        {removed > 0 && <span class="minus">−{removed}</span>}
      </span>
    </button>
  );
};

export const DiffFile = ({ file, isOpen }: { file: FileDiff; isOpen: boolean }) => {
  const open = useSignal(isOpen);
  const { lines } = file;
  const path = escapeInvisible(file.path);
  return (
    <section class="panel" aria-label={path}>
      <FileHead file={file} open={open} />
      {open.value &&
        (lines.length > 0 ? (
          <Diff label={`Diff of ${path}`} lines={lines} />
        ) : (
          <p class="pad dim small">No lines to show: the file is empty or not text.</p>
        ))}
    </section>
  );
};
