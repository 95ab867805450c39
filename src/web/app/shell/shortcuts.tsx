// The list of keyboard shortcuts, opened with `?`.
import { signal } from "@preact/signals";
import { Dialog } from "../parts/dialog.tsx";
import { MORE_PLACES, PLACES } from "./page-list.ts";

const isOpen = signal(false);

export const openShortcuts = (): void => {
  isOpen.value = true;
};
const close = (): void => {
  isOpen.value = false;
};

type Row = readonly [keys: string, what: string];

const GROUPS: readonly (readonly [title: string, rows: readonly Row[]])[] = [
  [
    "Everywhere",
    [
      ["?", "Keyboard shortcuts"],
      ["Ctrl K", "Search and commands"],
      ["/", "Search in a list"],
      ["N", "New workspace"],
      ...[...PLACES, ...MORE_PLACES].map(({ keys, label }): Row => [keys.toUpperCase(), label]),
    ],
  ],
  [
    "In a chat",
    [
      ["Enter", "Send the message"],
      ["Shift Enter", "New line"],
      ["Ctrl Enter", "Interrupt and send"],
      ["Shift Tab", "Next permission mode"],
      ["Escape", "Interrupt the turn"],
      ["A", "Allow once"],
      ["D", "Deny"],
      ["I", "Write a message"],
      ["C", "New chat"],
    ],
  ],
];

export const Shortcuts = () =>
  isOpen.value ? (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      {GROUPS.map(([title, rows]) => (
        <section key={title} class="stack" aria-label={title}>
          <h3>{title}</h3>
          <dl class="kv keys">
            {rows.map(([keys, what]) => (
              <div key={what}>
                <dt>
                  {keys.split(" ").map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Dialog>
  ) : null;
