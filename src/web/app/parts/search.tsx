// A search field for the API's `key:value` language: completed terms become chips, and keys and values are suggested.
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { onKeys } from "../shell/keys.ts";
import { sets } from "./handlers.ts";
import { Icon } from "./icon.tsx";

export type Term = { readonly key: string; readonly value: string };

type SearchProps = {
  readonly label: string;
  readonly placeholder: string;
  readonly terms: readonly Term[];
  readonly words: string;
  readonly keys: readonly string[];
  readonly valuesOf: (key: string) => readonly string[];
  readonly onChange: (terms: readonly Term[], words: string) => void;
};

const MAX_OFFERS = 8;

export const Search = ({ label, placeholder, terms, words, keys, valuesOf, onChange }: SearchProps) => {
  const input = useRef<HTMLInputElement>(null);
  const focused = useSignal(false);
  const chosen = useSignal(-1);
  const id = useId();
  useEffect(() => onKeys("/", () => input.current?.focus()), []);
  const [, before = "", last = ""] = words.match(/^(.*?)(\S*)$/) ?? [];
  const at = last.indexOf(":");
  const key = at > 0 ? last.slice(0, at).toLowerCase() : undefined;
  const started = (key === undefined ? last : last.slice(at + 1)).toLowerCase();
  const offered = (key === undefined ? (last === "" ? [] : keys) : valuesOf(key))
    .filter((one) => one.toLowerCase().startsWith(started))
    .slice(0, MAX_OFFERS);
  const isOpen = focused.value && offered.length > 0;

  const acceptSuggestion = (text: string): void => {
    chosen.value = -1;
    if (key === undefined) onChange(terms, `${before}${text}:`);
    else onChange([...terms, { key, value: text }], before.trim());
    input.current?.focus();
  };
  const write = (text: string): void => {
    chosen.value = -1;
    // A space completes a term.
    const completedTerm = text.match(/^(.*?)([^\s:"]+):("[^"]+"|[^\s"]+)\s$/);
    if (completedTerm)
      onChange(
        [...terms, { key: completedTerm[2] ?? "", value: (completedTerm[3] ?? "").replaceAll('"', "") }],
        (completedTerm[1] ?? "").trim(),
      );
    else onChange(terms, text);
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && isOpen) {
      chosen.value = (chosen.value + step + offered.length) % offered.length;
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const one = offered[chosen.value];
      if (one !== undefined && isOpen) acceptSuggestion(one);
      else if (key !== undefined && started !== "") write(`${words} `);
    } else if (event.key === "Tab" && isOpen && !event.shiftKey && last !== "") {
      acceptSuggestion(offered[Math.max(0, chosen.value)] ?? "");
      event.preventDefault();
    } else if (event.key === "Backspace" && words === "" && terms.length > 0) {
      onChange(terms.slice(0, -1), "");
    } else if (event.key === "Escape" && words !== "") {
      onChange(terms, "");
      event.stopPropagation();
    }
  };
  return (
    <search class="search">
      <Icon name="search" />
      {terms.map((term, index) => (
        <span key={`${term.key}:${term.value}`} class="chip">
          <b>{term.key}:</b>
          {term.value}
          <button
            type="button"
            aria-label={`Remove ${term.key} filter`}
            onClick={() => onChange(terms.toSpliced(index, 1), words)}
          >
            <Icon name="x" />
          </button>
        </span>
      ))}
      <input
        ref={input}
        aria-label={label}
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && chosen.value >= 0 ? `${id}-${chosen.value}` : undefined}
        aria-keyshortcuts="/"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        placeholder={placeholder}
        value={words}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={press}
        onFocus={sets(focused, true)}
        onBlur={sets(focused, false)}
      />
      <kbd aria-hidden="true">/</kbd>
      <div class="menu offers" id={id} role="listbox" aria-label="Terms" hidden={!isOpen}>
        {offered.map((one, index) => (
          <button
            key={one}
            id={`${id}-${index}`}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen.value}
            onMouseDown={(event) => {
              event.preventDefault();
              acceptSuggestion(one);
            }}
          >
            {key === undefined ? `${one}:` : one}
          </button>
        ))}
      </div>
    </search>
  );
};
