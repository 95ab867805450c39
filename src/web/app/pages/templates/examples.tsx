// Templates that come with the server: one press makes one.

import { useSignal } from "@preact/signals";
import type { Template } from "#schema/templates/template.ts";
import type { TemplateExample } from "#schema/templates/template-version.ts";
import { call, formatError } from "../../data/api.ts";
import { LogFeed } from "../../data/logs.ts";
import { useResource } from "../../data/resource.ts";
import { organizations } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Inline } from "../../parts/inline/inline.tsx";

type ExamplesProps = {
  readonly templates: readonly Template[];
  readonly made: (template: Template) => void;
};

export const Examples = ({ templates, made }: ExamplesProps) => {
  const { state } = useResource("template examples", () => call("GET /templates/examples"));
  const examples = state.value.data ?? [];
  if (examples.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="examples">
      <div class="head">
        <h2 id="examples">Ready to use</h2>
      </div>
      <div class="cards">
        {examples.map((one) => (
          <Example key={one.id} example={one} templates={templates} made={made} />
        ))}
      </div>
    </section>
  );
};

/** The example's own name, or that with the first number that is free. */
const freeName = (wanted: string, templates: readonly Template[]): string => {
  const taken = new Set(templates.map(({ name }) => name.toLowerCase()));
  let name = wanted;
  for (let at = 2; taken.has(name.toLowerCase()); at++) name = `${wanted}-${at}`;
  return name;
};

/** Resolves when the import has ended, however it did. */
const imported = (version_id: string): Promise<void> =>
  new Promise((resolve) => {
    const feed = new LogFeed();
    const path = `/templateversions/${version_id}/logs`;
    const ended = (): void => {
      feed.end();
      resolve();
    };
    feed.follow({ source: "import", path, ended });
  });

const Example = ({ example, templates, made }: ExamplesProps & { example: TemplateExample }) => {
  const { id, name, description } = example;
  const problem = useSignal("");
  const make = async (): Promise<void> => {
    problem.value = "";
    try {
      const organization = organizations.value[0]?.id ?? "";
      const path = { organization };
      const begun = await call("POST /organizations/:organization/templateversions", {
        path,
        body: { example_id: id },
      });
      await imported(begun.id);
      const version = await call("GET /templateversions/:templateversion", { path: { templateversion: begun.id } });
      if (version.job.status !== "succeeded") throw new Error(version.job.error ?? "The import did not succeed.");
      const free = freeName(id, templates);
      const body = { name: free, display_name: free === id ? name : "", description, template_version_id: begun.id };
      made(await call("POST /organizations/:organization/templates", { path, body }));
    } catch (error) {
      problem.value = formatError(error);
    }
  };
  const count = templates.filter((one) => one.name === id || one.name.startsWith(`${id}-`)).length;
  return (
    <div class="pick">
      <span class="art">
        <Icon name="layers" />
      </span>
      <span class="line">
        <span class="med clip">{name}</span>
        {count > 0 && <span class="badge">In use</span>}
      </span>
      <p>
        <Inline text={description} />
      </p>
      {problem.value && (
        <p class="t-bad" role="alert">
          {problem.value}
        </p>
      )}
      <span>
        <Button small label={`Use ${name}`} onPress={make}>
          Use {name}
        </Button>
      </span>
    </div>
  );
};
