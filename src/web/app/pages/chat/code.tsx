// A code block with its language and a copy button, highlighted when it is complete.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { escapeAllHidden } from "#base/visible-text.ts";
import { loadCode } from "../../data/load-code.ts";
import { copy } from "../../parts/as-command.tsx";
import { IconButton } from "../../parts/button.tsx";
import type { Piece } from "./highlight.ts";

/** Returns the text, as highlighted elements once they are available. */
const useColours = (text: string, language: string, isLive: boolean) => {
  const pieces = useSignal<readonly Piece[] | undefined>(undefined);
  useEffect(() => {
    pieces.value = undefined;
    if (isLive || language === "") return;
    let isOver = false;
    loadCode(() => import("./highlight.ts"))
      .then(({ highlight }) => highlight(text, language))
      .then(
        (found) => {
          if (!isOver) pieces.value = found;
        },
        // The text is readable without colors.
        () => {},
      );
    return () => {
      isOver = true;
    };
  }, [text, language, isLive]);
  return (
    pieces.value?.map(([piece, name], at) =>
      name === "" ? (
        piece
      ) : (
        <span key={at} class={name}>
          {piece}
        </span>
      ),
    ) ?? text
  );
};

/** A shell command shown in full, with hidden characters made visible. */
export const ShellText = ({ text }: { text: string }) => <>{useColours(escapeAllHidden(text), "bash", false)}</>;

export const Code = ({ text, language, isLive }: { text: string; language: string; isLive: boolean }) => {
  const coloured = useColours(text, language, isLive);
  return (
    <div class="code">
      <pre class="mono" tabIndex={0} role="group" aria-label={language === "" ? "Code" : `Code, ${language}`}>
        {coloured}
      </pre>
      <IconButton icon="copy" small label="Copy code" onPress={() => copy(text)} />
    </div>
  );
};
