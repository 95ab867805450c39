// A search field for the API's `key:value` language: completed terms become chips, and keys and values are suggested.
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { onKeys } from "../shell/keys.ts";
import { setTo } from "./handlers.ts";
import { Icon } from "./icon.tsx";

export type Term = { readonly key: string; readonly value: string };

type SearchProps = {
  readonly label: string;
  readonly placeholder: string;
  readonly terms: readonly Term[];
  readonly words: string;
  readonly keys: readonly string[];
  readonly listValues: (key: string) => readonly string[];
  readonly onChange: (terms: readonly Term[], words: string) => void;
};

const MAX_SUGGESTIONS = 8;

export const Search = ({ label, placeholder, terms, words, keys, listValues, onChange }: SearchProps) => {
  const input = useRef<HTMLInputElement>(null);
  const isFocused = useSignal(false);
  const selectedIndex = useSignal(-1);
  const id = useId();
  useEffect(() => onKeys("/", () => input.current?.focus()), []);
  const [, textBefore = "", lastWord = ""] = words.match(/^(.*?)(\S*)$/) ?? [];
  const colon = lastWord.indexOf(":");
  const key = colon > 0 ? lastWord.slice(0, colon).toLowerCase() : undefined;
  const prefix = (key === undefined ? lastWord : lastWord.slice(colon + 1)).toLowerCase();
  const suggestions = (key === undefined ? (lastWord === "" ? [] : keys) : listValues(key))
    .filter((one) => one.toLowerCase().startsWith(prefix))
    .slice(0, MAX_SUGGESTIONS);
  const isOpen = isFocused.value && suggestions.length > 0;

  const acceptSuggestion = (text: string): void => {
    selectedIndex.value = -1;
    if (key === undefined) onChange(terms, `${textBefore}${text}:`);
    else onChange([...terms, { key, value: text }], textBefore.trim());
    input.current?.focus();
  };
  const changeText = (text: string): void => {
    selectedIndex.value = -1;
    // A space completes a term.
    const completedTerm = text.match(/^(.*?)([^\s:"]+):("[^"]+"|[^\s"]+)\s$/);
    if (completedTerm)
      onChange(
        [...terms, { key: completedTerm[2] ?? "", value: (completedTerm[3] ?? "").replaceAll('"', "") }],
        (completedTerm[1] ?? "").trim(),
      );
    else onChange(terms, text);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && isOpen) {
      selectedIndex.value = (selectedIndex.value + step + suggestions.length) % suggestions.length;
      event.preventDefault();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const suggestion = suggestions[selectedIndex.value];
      if (suggestion !== undefined && isOpen) acceptSuggestion(suggestion);
      else if (key !== undefined && prefix !== "") changeText(`${words} `);
    } else if (event.key === "Tab" && isOpen && !event.shiftKey && lastWord !== "") {
      acceptSuggestion(suggestions[Math.max(0, selectedIndex.value)] ?? "");
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
        aria-activedescendant={isOpen && selectedIndex.value >= 0 ? `${id}-${selectedIndex.value}` : undefined}
        aria-keyshortcuts="/"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        placeholder={placeholder}
        value={words}
        onInput={(event) => changeText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onFocus={setTo(isFocused, true)}
        onBlur={setTo(isFocused, false)}
      />
      <kbd aria-hidden="true">/</kbd>
      <div class="menu offers" id={id} role="listbox" aria-label="Terms" hidden={!isOpen}>
        {suggestions.map((one, index) => (
          <button
            key={one}
            id={`${id}-${index}`}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={index === selectedIndex.value}
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
