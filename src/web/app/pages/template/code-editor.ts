// CodeMirror in a shadow root, where it uses adopted style sheets, which the page's policy allows. In the document it would insert style
// elements, which the policy forbids. Custom properties of the page apply inside the shadow root.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { dockerFile } from "@codemirror/legacy-modes/mode/dockerfile";
import { python } from "@codemirror/legacy-modes/mode/python";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { hcl } from "./hcl.ts";

const highlightStyle = HighlightStyle.define([
  { tag: [tags.comment, tags.meta], color: "var(--text-3)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-str)" },
  { tag: [tags.number, tags.bool, tags.atom, tags.null], color: "var(--code-num)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.typeName], color: "var(--code-key)" },
  {
    tag: [tags.propertyName, tags.definition(tags.propertyName), tags.function(tags.variableName)],
    color: "var(--code-fn)",
  },
]);

const editorTheme = EditorView.theme({
  "&": { height: "100%", background: "var(--bg-inset)", color: "var(--text)" },
  // The page draws the focus outline around the box.
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { font: "var(--type-code)", lineHeight: "1.25rem" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { background: "var(--bg-inset)", color: "var(--text-3)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "var(--bg-hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
  ".cm-selectionMatch, .cm-searchMatch": { background: "var(--attn-soft)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--attn)" },
  ".cm-panels": { background: "var(--bg-raised)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panels input, .cm-panels button": {
    font: "var(--type-small)",
    background: "var(--bg)",
    color: "var(--text)",
    border: "1px solid var(--line-control)",
    borderRadius: "4px",
    backgroundImage: "none",
  },
});

const LANGUAGES: readonly (readonly [RegExp, () => Extension])[] = [
  [/\.ya?ml$|\.json$/, () => yaml()],
  [/\.(tf|tfvars|hcl|nix)$/, () => StreamLanguage.define(hcl)],
  [/(^|\/)(Dockerfile|Containerfile)[^/]*$/, () => StreamLanguage.define(dockerFile)],
  [/\.(sh|bash|zsh)$/, () => StreamLanguage.define(shell)],
  [/\.py$/, () => StreamLanguage.define(python)],
  [/\.toml$/, () => StreamLanguage.define(toml)],
];

type EditorOptions = {
  readonly path: string;
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly onChange: (text: string) => void;
  /** Called for Ctrl+S or Cmd+S. */
  readonly onSave: () => void;
};

export class CodeEditor {
  readonly #view: EditorView;

  constructor(box: HTMLElement, { path, text, isReadOnly, onChange, onSave }: EditorOptions) {
    const root = box.shadowRoot ?? box.attachShadow({ mode: "open" });
    const language = LANGUAGES.find(([pattern]) => pattern.test(path))?.[1]();
    this.#view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          search({ top: true }),
          indentUnit.of("  "),
          // Tab moves the focus out of the editor, as everywhere on the page.
          keymap.of([
            {
              key: "Mod-s",
              run: () => {
                onSave();
                return true;
              },
            },
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
          ]),
          syntaxHighlighting(highlightStyle),
          editorTheme,
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ "aria-label": path }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) onChange(state.doc.toString());
          }),
          ...(language ? [language] : []),
        ],
      }),
    });
  }

  focus(): void {
    this.#view.focus();
  }

  end(): void {
    this.#view.destroy();
  }
}
