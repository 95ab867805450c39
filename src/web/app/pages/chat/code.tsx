// A code block with its language and a copy button, highlighted when it is complete.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { escapeAllHidden } from "#base/visible-text.ts";
import { loadCode } from "../../data/load-code.ts";
import { copyText } from "../../parts/as-command.tsx";
import { IconButton } from "../../parts/button.tsx";
import type { Piece } from "./highlight.ts";

/** Returns the text, as highlighted elements once they are available. */
const useHighlight = (text: string, language: string, isLive: boolean) => {
  const pieces = useSignal<readonly Piece[] | undefined>(undefined);
  useEffect(() => {
    pieces.value = undefined;
    if (isLive || language === "") return;
    let isUnmounted = false;
    loadCode(() => import("./highlight.ts"))
      .then(({ highlight }) => highlight(text, language))
      .then(
        (highlighted) => {
          if (!isUnmounted) pieces.value = highlighted;
        },
        // The text is readable without colors.
        () => {},
      );
    return () => {
      isUnmounted = true;
    };
  }, [text, language, isLive]);
  return (
    pieces.value?.map(([piece, name], index) =>
      name === "" ? (
        piece
      ) : (
        <span key={index} class={name}>
          {piece}
        </span>
      ),
    ) ?? text
  );
};

/** A shell command shown in full, with hidden characters made visible. */
export const ShellText = ({ text }: { text: string }) => <>{useHighlight(escapeAllHidden(text), "bash", false)}</>;

export const Code = ({ text, language, isLive }: { text: string; language: string; isLive: boolean }) => {
  const highlighted = useHighlight(text, language, isLive);
  return (
    <div class="code">
      <pre class="mono" tabIndex={0} role="group" aria-label={language === "" ? "Code" : `Code, ${language}`}>
        {highlighted}
      </pre>
      <IconButton icon="copy" small label="Copy code" onPress={() => copyText(text)} />
    </div>
  );
};
