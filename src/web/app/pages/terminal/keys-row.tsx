// The row of keys below the terminal that a phone's keyboard lacks. Ctrl and Alt apply to the next character.
import type { Signal } from "@preact/signals";
import {
  KEYS_AFTER_MODIFIERS,
  KEYS_BEFORE_MODIFIERS,
  type Modifier,
  type RowKey,
} from "../../parts/terminal/terminal-keys.ts";
import type { TerminalSession } from "../../parts/terminal/terminal-session.ts";

type KeysRowProps = {
  readonly session: () => TerminalSession | undefined;
  readonly modifier: Signal<Modifier | undefined>;
};

// Pressing a key must not move the focus from the terminal: a phone would hide its keyboard.
const keepFocus = (event: Event): void => event.preventDefault();

export const KeysRow = ({ session, modifier }: KeysRowProps) => {
  const renderKey = ({ label, name, data }: RowKey) => (
    <button
      key={label}
      type="button"
      class="btn sm"
      aria-label={name}
      onPointerDown={keepFocus}
      onClick={() => session()?.type(data)}
    >
      {label}
    </button>
  );
  const renderModifier = (name: Modifier, label: string) => (
    <button
      type="button"
      class="btn sm"
      aria-pressed={modifier.value === name}
      onPointerDown={keepFocus}
      onClick={() => session()?.modify(modifier.value === name ? undefined : name)}
    >
      {label}
    </button>
  );
  return (
    <div class="keysrow" role="toolbar" aria-label="Keys" tabIndex={0}>
      {KEYS_BEFORE_MODIFIERS.map(renderKey)}
      {renderModifier("ctrl", "Ctrl")}
      {renderModifier("alt", "Alt")}
      {KEYS_AFTER_MODIFIERS.map(renderKey)}
    </div>
  );
};
