// The command palette (Ctrl/Cmd-K): finds workspaces, chats, pages and commands by name. All typed words must match.
import { computed, signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { chats } from "../data/chats.ts";
import { viewer } from "../data/session.ts";
import { formatStatus, getChatState, getWorkspaceState } from "../data/states.ts";
import { workspacesByUse } from "../data/workspaces.ts";
import { restoreFocus } from "../parts/dialog.tsx";
import { setTo } from "../parts/handlers.ts";
import { Icon } from "../parts/icon.tsx";
import { COMMANDS, type Entry, listPageEntries, listWorkspaceCommands } from "./commands.ts";
import { listRepositoryEntries } from "./repository-link.ts";
import { showError } from "./toasts.tsx";

const isOpen = signal(false);
const queryText = signal("");
const selectedIndex = signal(0);
const MAX_PER_GROUP = 6;

export const openPalette = (): void => {
  queryText.value = "";
  selectedIndex.value = 0;
  isOpen.value = true;
};

const matches = computed((): readonly Entry[] => {
  const words = queryText.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matchesAll = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
  const takeMatches = (entries: Iterable<Entry>): Entry[] => {
    const matching: Entry[] = [];
    for (const entry of entries) {
      if (matching.length === MAX_PER_GROUP) break;
      if (matchesAll(`${entry.label} ${entry.note ?? ""}`)) matching.push(entry);
    }
    return matching;
  };
  return [
    ...listRepositoryEntries(queryText.value),
    ...takeMatches(
      workspacesByUse.value.map((one) => ({
        group: "Workspaces",
        icon: "box" as const,
        label: one.name,
        note: formatStatus(one, getWorkspaceState(one)),
        href: `/workspaces/${one.id}`,
      })),
    ),
    ...takeMatches(
      [...chats.value.values()].map((one) => ({
        group: "Chats",
        icon: "chat" as const,
        label: one.title,
        note: getChatState(one).words,
        href: `/chats/${one.id}`,
      })),
    ),
    ...takeMatches(words.length > 0 ? listWorkspaceCommands(workspacesByUse.value) : []),
    ...takeMatches(listPageEntries(viewer.value)),
    ...takeMatches(COMMANDS),
  ];
});

const Highlighted = ({ text }: { text: string }) => {
  const [first] = queryText.value.toLowerCase().split(/\s+/).filter(Boolean);
  const start = first ? text.toLowerCase().indexOf(first) : -1;
  if (!first || start < 0) return <span class="clip">{text}</span>;
  return (
    <span class="clip">
      {text.slice(0, start)}
      <mark>{text.slice(start, start + first.length)}</mark>
      {text.slice(start + first.length)}
    </span>
  );
};

export const Palette = () => (isOpen.value ? <OpenPalette /> : null);

const OpenPalette = () => {
  const dialog = useRef<HTMLDialogElement>(null);
  const { route } = useLocation();
  // A layout effect runs before the next keystroke: text typed right after Ctrl-K belongs to the palette.
  useLayoutEffect(() => {
    const [focusedBefore, box] = [document.activeElement, dialog.current];
    box?.showModal();
    return () => restoreFocus(focusedBefore, box);
  }, []);
  const entries = matches.value;
  const chosenIndex = Math.min(selectedIndex.value, entries.length - 1);
  const openEntry = (entry: Entry | undefined): void => {
    if (!entry) return;
    dialog.current?.close();
    if (entry.href) route(entry.href);
    const result = entry.act?.();
    if (result instanceof Promise) void result.catch(showError);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter") openEntry(entries[chosenIndex]);
    else if (step === 0 || entries.length === 0) return;
    else selectedIndex.value = (chosenIndex + step + entries.length) % entries.length;
    event.preventDefault();
    document.getElementById(`palette-${selectedIndex.value}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Search everything"
      onClose={setTo(isOpen, false)}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="query">
        <Icon name="search" />
        <input
          aria-label="Search everything"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={entries.length > 0 ? `palette-${chosenIndex}` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder="Search workspaces, chats, pages and commands"
          value={queryText.value}
          onInput={(event) => {
            queryText.value = event.currentTarget.value;
            selectedIndex.value = 0;
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div class="menu flat" id="palette-list" role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          <div key={`${entry.group} ${entry.href ?? entry.label}`} role="presentation">
            {entries[index - 1]?.group !== entry.group && <h3 role="presentation">{entry.group}</h3>}
            <button
              type="button"
              tabIndex={-1}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === chosenIndex}
              onClick={() => openEntry(entry)}
            >
              <Icon name={entry.icon} />
              <Highlighted text={entry.label} />
              {entry.note && <span class="dim small">{entry.note}</span>}
            </button>
          </div>
        ))}
        {entries.length === 0 && <p class="pad dim">No results.</p>}
      </div>
    </dialog>
  );
};
