// The headers sent with each call to an MCP server. Stored values are never shown; new headers replace all of them.
import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button, IconButton } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";

export type Header = { readonly name: string; readonly value: string };

type HeadersProps = {
  readonly headers: Signal<readonly Header[]>;
  /** The server has stored headers. */
  readonly hasStored: boolean;
};

const EMPTY_HEADER: Header = { name: "", value: "" };

export const Headers = ({ headers, hasStored }: HeadersProps) => {
  const addHeader = (): void => {
    headers.value = [...headers.value, EMPTY_HEADER];
  };
  useEffect(() => {
    if (!hasStored && headers.peek().length === 0) addHeader();
  }, []);
  const changeHeader = (headerIndex: number, patch: Partial<Header>): void => {
    headers.value = headers.value.map((one, index) => (index === headerIndex ? { ...one, ...patch } : one));
  };
  return (
    <fieldset class="stack">
      <legend>Headers</legend>
      {headers.value.map((one, index) => (
        <div key={index} class="rule two">
          <Field
            label="Name"
            required
            pattern="[A-Za-z0-9._\-]+"
            title="Letters, digits and hyphens"
            autocomplete="off"
            spellcheck={false}
            placeholder="X-Api-Key"
            value={one.name}
            onInput={(event) => changeHeader(index, { name: event.currentTarget.value })}
          />
          <Field
            label="Value"
            type="password"
            required
            autocomplete="off"
            value={one.value}
            onInput={(event) => changeHeader(index, { value: event.currentTarget.value })}
          />
          <IconButton
            icon="trash"
            label={`Remove header ${index + 1}`}
            onPress={() => {
              headers.value = headers.value.toSpliced(index, 1);
            }}
          />
        </div>
      ))}
      <p class="small mut">
        {hasStored
          ? "Stored values are never shown. Headers that you add here replace all stored headers."
          : "Stored encrypted."}
      </p>
      <div>
        <Button small icon="plus" onPress={addHeader}>
          Add header
        </Button>
      </div>
    </fieldset>
  );
};
