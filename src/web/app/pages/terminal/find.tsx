// Search in a terminal's output.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { IconButton } from "../../parts/button.tsx";
import type { TerminalSession } from "../../parts/terminal/terminal-session.ts";

type FindProps = { readonly session: () => TerminalSession | undefined; readonly onClose: () => void };

export const Find = ({ session, onClose }: FindProps) => {
  const query = useSignal("");
  const isMissing = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    return () => {
      const terminalSession = session();
      terminalSession?.terminal.focus();
      void terminalSession?.search().then((search) => search.clearDecorations());
    };
  }, []);
  const findText = async (direction: "next" | "before", isNew = false): Promise<void> => {
    const search = await session()?.search();
    if (!search) return;
    const { value } = query;
    const found = direction === "next" ? search.findNext(value, { incremental: isNew }) : search.findPrevious(value);
    isMissing.value = value !== "" && !found;
  };
  return (
    <div class="line find" role="search">
      <input
        ref={input}
        class="input"
        type="search"
        aria-label="Search terminal"
        placeholder="Search terminal"
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          void findText("before", true);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter") void findText(event.shiftKey ? "next" : "before");
        }}
      />
      <span class="small mut" role="status">
        {isMissing.value ? "No results" : ""}
      </span>
      <IconButton icon="up" small label="Previous match" onPress={() => findText("before")} />
      <IconButton icon="down" small label="Next match" onPress={() => findText("next")} />
      <IconButton icon="x" small label="Close search" onPress={onClose} />
    </div>
  );
};
