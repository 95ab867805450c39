// Mapping plans, states and graphs printed by Terraform 1.11.4 to what Slipway stores: each template of templates/ results in its
// expected.json. Also the cases in which an address or name could be misread.
import { describe, expect, test } from "bun:test";
import { toParameter, toPreset, toResources } from "#src/provisioners/terraform/manifest.ts";
import { getModule, toLabel } from "#src/provisioners/terraform/mapping/address.ts";
import type { PlanDocument, StateDocument } from "#src/provisioners/terraform/mapping/document.ts";
import { Graph } from "#src/provisioners/terraform/mapping/graph.ts";
import { mapPlan, mapState } from "#src/provisioners/terraform/mapping/map.ts";
import { toParameters } from "#src/provisioners/terraform/mapping/questions.ts";
import { mapResources } from "#src/provisioners/terraform/mapping/resources.ts";
import {
  loadExpected,
  loadRecorded,
  loadRecordedText,
  normalizeParameters,
  normalizeResources,
  TEMPLATES,
} from "./comparison.ts";

for (const name of TEMPLATES) {
  describe(`the template ${name}`, () => {
    for (const transition of ["start", "stop"] as const) {
      test(`[TF-1] its plan of a ${transition} maps to the expected result`, async () => {
        const expected = await loadExpected(name);
        const plan = await loadRecorded<PlanDocument>(name, `plan-${transition}.json`);
        const mapped = mapPlan(plan, await loadRecordedText(name, "graph.dot"));
        const { resources, daily_cost } = mapped;
        expect({ resources: normalizeResources(resources, ""), daily_cost }).toEqual(expected.planned[transition]);
        if (transition === "stop") return;
        expect(normalizeParameters(mapped.parameters)).toEqual(expected.parameters);
        expect<unknown>(mapped.presets).toEqual(expected.presets);
        expect<unknown>(mapped.external_auth).toEqual(expected.external_auth);
        expect<unknown>(mapped.tags).toEqual(expected.tags ?? {});
        expect(mapped.has_ai_task).toBe(expected.has_ai_task);
        expect(mapped.has_external_agent).toBe(expected.has_external_agent);
      });

      test(`[TF-1] its state after a ${transition} maps to the expected result`, async () => {
        const expected = await loadExpected(name);
        const state = await loadRecorded<StateDocument>(name, `state-${transition}.json`);
        const { resources } = mapState(state, await loadRecordedText(name, "graph.dot"));
        expect(normalizeResources(resources, "<from state>")).toEqual(expected.built[transition]);
      });
    }
  });
}

test("[TF-2] a mapping becomes a manifest: tokens and IDs of apps from the state, cron expressions with seconds", async () => {
  const state = await loadRecorded<StateDocument>("apps-and-scripts", "state-start.json");
  const resources = toResources(mapState(state, await loadRecordedText("apps-and-scripts", "graph.dot")).resources);
  const [agent] = resources.flatMap(({ agents = [] }) => agents);
  expect(agent?.token).toMatch(/^[0-9a-f-]{36}$/);
  expect(agent?.api_key_scope).toBe("no_user_data");
  // By order, then by name; the one with an explicit order comes last.
  expect(agent?.apps?.map(({ slug }) => slug)).toEqual(["docs", "each-one", "each-two", "htop", "web"]);
  expect(agent?.apps?.every(({ id }) => /^[0-9a-f-]{36}$/.test(id ?? ""))).toBe(true);
  expect(agent?.scripts?.map(({ cron }) => cron)).toEqual([undefined, undefined, undefined, "0 0 3 * * *", undefined]);
  expect(agent?.metadata?.map(({ key }) => key)).toEqual(["disk", "cpu"]);
});

test("[TF-2] parameters keep names with spaces and only effective limits, and an empty default is not a missing one", async () => {
  const plan = await loadRecorded<PlanDocument>("parameters", "plan-start.json");
  const { parameters } = mapPlan(plan, await loadRecordedText("parameters", "graph.dot"));
  const byName = new Map(parameters.map((one) => [one.name, toParameter(one)]));
  expect(byName.get("Zones of interest")?.default).toBe('["a","b"]');
  expect(byName.get("notes")).toMatchObject({ default: "", styling: { placeholder: "anything" } });
  expect(byName.get("required_one")?.default).toBeUndefined();
  expect(byName.get("cpus")?.validation).toEqual({
    min: 1,
    max: 16,
    monotonic: "increasing",
    error: "{value} is not between {min} and {max}",
  });
  expect(byName.get("project")?.validation).toEqual({
    regex: "^[a-z0-9-]+$",
    error: "small letters, digits and hyphens",
  });
});

test("[TF-2] prebuilds of presets keep their expiry and their schedule", async () => {
  const plan = await loadRecorded<PlanDocument>("presets-prebuilds", "plan-start.json");
  const { presets } = mapPlan(plan, await loadRecordedText("presets-prebuilds", "graph.dot"));
  const [large, small] = presets.map(toPreset);
  expect(large).toEqual({ name: "Large", parameters: { region: "us", cpus: "8" } });
  expect(small?.prebuilds).toEqual({
    instances: 1,
    ttl_ms: 86_400_000,
    schedule: { timezone: "Europe/Berlin", entries: [{ cron: "* 8-17 * * 1-5", instances: 3 }] },
  });
});

describe("misleading names and addresses", () => {
  const makeManaged = (address: string, values: Record<string, unknown> = {}) => {
    const label = toLabel(address).split(".");
    const [type = "", name = ""] = label.slice(-2);
    return { address, mode: "managed" as const, type, name, values };
  };
  const makeGraph = (edges: readonly (readonly [string, string])[]): Graph => {
    const labels = [...new Set(edges.flat())];
    const node = (label: string): string => `"[root] ${label} (expand)"`;
    return new Graph(
      [
        ...labels.map((label) => `\t\t${node(label)} [label = "${label}", shape = "box"]`),
        ...edges.map(([from, to]) => `\t\t${node(from)} -> ${node(to)}`),
      ].join("\n"),
    );
  };
  const agent = { os: "linux", arch: "amd64" };

  test("[TF-3] removes an index from any position of an address, including one with dots and brackets", () => {
    expect(toLabel('module.a["x.y]z"].module.b[0].t.n["k\\"]"]')).toBe("module.a.module.b.t.n");
    expect(getModule('module.a["x.y"].t.n[0]')).toBe('module.a["x.y"]');
    expect(getModule("t.n[0]")).toBe("");
  });

  test("[TF-3] in a module with several instances, each agent runs on the machine of its own instance", () => {
    const graph = makeGraph([["module.box.terraform_data.machine", "module.box.coder_agent.main"]]);
    const one = mapResources(
      [makeManaged("module.box[0].terraform_data.machine"), makeManaged("module.box[0].coder_agent.main", agent)],
      graph,
    );
    expect(one.resources.map(({ module_path, agents }) => [module_path, agents.length])).toEqual([
      ["module.box[0]", 1],
    ]);
  });

  test("[TF-3] an agent of a machine with `count` exists once, on the first instance", () => {
    const graph = makeGraph([["terraform_data.machine", "coder_agent.main"]]);
    const { resources } = mapResources(
      [
        makeManaged("coder_agent.main", agent),
        makeManaged("terraform_data.machine[0]"),
        makeManaged("terraform_data.machine[1]"),
      ],
      graph,
    );
    expect(resources.map(({ agents }) => agents.length)).toEqual([1, 0]);
  });

  test("[TF-3] an agent without a machine is left out; an external one belongs to its own resource", () => {
    const graph = makeGraph([["coder_external_agent.it", "coder_agent.away"]]);
    const { resources } = mapResources(
      [
        makeManaged("coder_agent.away", agent),
        makeManaged("coder_agent.lost", agent),
        makeManaged("coder_external_agent.it"),
      ],
      graph,
    );
    expect(resources.map(({ type, agents }) => [type, agents.map(({ name }) => name)])).toEqual([
      ["coder_external_agent", ["away"]],
    ]);
  });

  test("[TF-4] two agents or apps with one name, a name with an underscore, and two metadata of one resource are refused", () => {
    const graph = makeGraph([
      ["terraform_data.a", "coder_agent.one"],
      ["terraform_data.b", "module.m.coder_agent.One"],
      ["coder_metadata.x", "terraform_data.a"],
      ["coder_metadata.y", "terraform_data.a"],
      ["terraform_data.c", "coder_agent.not_good"],
    ]);
    const both = [makeManaged("coder_agent.one", agent), makeManaged("terraform_data.a")];
    expect(() =>
      mapResources([...both, makeManaged("module.m.coder_agent.One", agent), makeManaged("terraform_data.b")], graph),
    ).toThrow("two agents named one");
    expect(() =>
      mapResources([...both, makeManaged("coder_metadata.x"), makeManaged("coder_metadata.y")], graph),
    ).toThrow("two coder_metadata");
    expect(() =>
      mapResources([makeManaged("coder_agent.not_good", agent), makeManaged("terraform_data.c")], graph),
    ).toThrow("underscore");
  });

  test("[TF-3] metadata of several instances of one resource are distinguished, in a plan by number and in a state by ID", () => {
    const graph = makeGraph([
      ["coder_metadata.x", "terraform_data.a"],
      ["coder_metadata.y", "terraform_data.a"],
    ]);
    const mapById = (id: (n: number) => string | undefined) =>
      mapResources(
        [
          ...[0, 1, 2].map((n) => makeManaged(`terraform_data.a[${n}]`, { id: id(n) })),
          makeManaged("coder_metadata.x", { resource_id: id(2), icon: "x" }),
          makeManaged("coder_metadata.y", { resource_id: id(1), icon: "y" }),
        ],
        graph,
      ).resources.map(({ icon }) => icon);
    expect(mapById(() => undefined)).toEqual(["x", "y", ""]);
    expect(mapById((n) => `id-${n}`)).toEqual(["", "y", "x"]);
  });

  test("[TF-4] a parameter named __proto__ is refused, because values are stored by name", () => {
    const one = { ...makeManaged("data.coder_parameter.one", { name: "__proto__" }), mode: "data" as const };
    expect(() => toParameters([one])).toThrow("cannot be named __proto__");
    expect(toParameters([{ ...one, values: { name: "constructor" } }]).length).toBe(1);
  });

  test("[TF-4] variables are merged by their strategy, and a duplicate whose strategy is `error` is refused by name", () => {
    const graph = makeGraph([
      ["terraform_data.a", "coder_agent.one"],
      ["coder_env.a", "coder_agent.one"],
      ["coder_env.b", "coder_agent.one"],
    ]);
    const env = (merge_strategy: string): ReturnType<typeof mapResources> =>
      mapResources(
        [
          makeManaged("coder_agent.one", agent),
          makeManaged("terraform_data.a"),
          makeManaged("coder_env.a", { name: "PATHS", value: "/a" }),
          makeManaged("coder_env.b", { name: "PATHS", value: "/b", merge_strategy }),
        ],
        graph,
      );
    const value = (merge: string): unknown => env(merge).resources.flatMap(({ agents }) => agents)[0]?.env.PATHS;
    expect([value("append"), value("prepend"), value("replace")]).toEqual(["/a:/b", "/b:/a", "/b"]);
    expect(() => env("error")).toThrow("PATHS");
  });
});
