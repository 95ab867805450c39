// The gallery of the server's example templates. One click adds a template and opens the form for a workspace.

import { useSignal } from "@preact/signals";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateExample, TemplateVariable } from "#schema/templates/template-version.ts";
import { call, formatError } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Inline } from "../../parts/inline/inline.tsx";
import { Picture } from "../../parts/picture.tsx";
import { makeExample } from "./make-example.ts";
import { toNewWorkspaceUrl } from "./names.ts";

type ExamplesProps = {
  readonly templates: readonly Template[];
  readonly onCreated: (template: Template) => void;
};

export const Examples = ({ templates, onCreated }: ExamplesProps) => {
  const { state } = useResource("template examples", () => call("GET /templates/examples"));
  const examples = state.value.data ?? [];
  if (examples.length === 0) return null;
  const { unavailable } = examples.find((one) => one.unavailable !== "") ?? {};
  const kinds = Map.groupBy(examples, ({ kind }) => kind);
  return (
    <section class="stack" aria-labelledby="examples">
      <div class="head">
        <h2 id="examples">Starter templates</h2>
      </div>
      <p class="mut">Add a starter with one click, then change it as you like.</p>
      {unavailable && (
        <p class="banner box attn" role="status">
          <Icon name="warn" />
          <span>Docker workspaces are not available. {unavailable}</span>
        </p>
      )}
      <div class="cards">
        {[...kinds].map(([kind, variants]) => (
          <Example key={kind} variants={variants} templates={templates} onCreated={onCreated} />
        ))}
      </div>
    </section>
  );
};

/** `variants`: the same example for several provisioners, at least one. */
const Example = ({ variants, templates, onCreated }: ExamplesProps & { variants: readonly TemplateExample[] }) => {
  const problem = useSignal("");
  /** The example, with variables that need a value first. */
  const valuesRequest = useSignal<{ example: TemplateExample; missing: readonly TemplateVariable[] } | undefined>(
    undefined,
  );
  const [first] = variants as readonly [TemplateExample];
  const createTemplate = async (example: TemplateExample, values: Readonly<Record<string, string>>): Promise<void> => {
    const result = await makeExample(example, values);
    if ("template" in result) onCreated(result.template);
    else valuesRequest.value = { example, missing: result.missing };
  };
  const onPress = async (example: TemplateExample): Promise<void> => {
    problem.value = "";
    await createTemplate(example, {}).catch((error) => {
      problem.value = formatError(error);
    });
  };
  const findExisting = (example: TemplateExample): Template | undefined =>
    templates.find(({ name }) => name === example.id);
  return (
    <div class="pick">
      <span class="art">
        <Picture of={first.icon} otherwise="layers" />
      </span>
      <span class="line">
        <span class="med clip">{first.name}</span>
        {variants.some(findExisting) && <span class="badge">Added</span>}
      </span>
      <p>
        <Inline text={first.description} />
      </p>
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      <span class="line wrap acts">
        {variants.map((one) => (
          <UseButton
            key={one.id}
            example={one}
            shortLabel={one === first ? undefined : "In Docker"}
            template={findExisting(one)}
            onPress={() => onPress(one)}
          />
        ))}
      </span>
      {valuesRequest.value && (
        <ValuesDialog
          {...valuesRequest.value}
          createTemplate={createTemplate}
          close={setTo(valuesRequest, undefined)}
        />
      )}
    </div>
  );
};

type UseProps = {
  readonly example: TemplateExample;
  /** The button label of a variant other than the first. */
  readonly shortLabel: string | undefined;
  /** The template that was already added under this name. */
  readonly template: Template | undefined;
  readonly onPress: () => Promise<void>;
};

const UseButton = ({ example: { name, unavailable }, shortLabel, template, onPress }: UseProps) =>
  template ? (
    <ButtonLink small href={toNewWorkspaceUrl(template)} label={`Create workspace from ${name}`}>
      Create workspace
    </ButtonLink>
  ) : (
    <Button
      small
      look={shortLabel ? "ghost" : undefined}
      label={`Use ${name}`}
      disabled={unavailable !== ""}
      onPress={onPress}
    >
      {shortLabel ?? `Use ${name}`}
    </Button>
  );

type ValuesProps = {
  readonly example: TemplateExample;
  readonly missing: readonly TemplateVariable[];
  readonly createTemplate: (example: TemplateExample, values: Readonly<Record<string, string>>) => Promise<void>;
  readonly close: () => void;
};

const ValuesDialog = ({ example, missing, createTemplate, close }: ValuesProps) => (
  <FormDialog
    title={`Values for ${example.name}`}
    submitLabel="Use template"
    onClose={close}
    act={(values) => createTemplate(example, values)}
  >
    {() =>
      missing.map((one) => (
        <Field
          key={one.name}
          label={one.name}
          name={one.name}
          type={one.sensitive ? "password" : "text"}
          autocomplete="off"
          required
          hint={one.description}
        />
      ))
    }
  </FormDialog>
);
