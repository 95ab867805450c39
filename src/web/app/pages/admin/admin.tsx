// Administration: one section at a time, each with its own address.
import type { ComponentType } from "preact";
import { useRoute } from "preact-iso";
import { isSiteOwner, me } from "../../data/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Models } from "./models.tsx";
import { People } from "./people.tsx";

type Section = { readonly name: string; readonly label: string; readonly page: ComponentType };

const SECTIONS: readonly Section[] = [
  { name: "people", label: "People", page: People },
  { name: "models", label: "Models", page: Models },
];

export default function AdminPage() {
  const { params } = useRoute();
  const section = SECTIONS.find(({ name }) => name === (params.tab ?? "people"));
  const isManager = isSiteOwner.value || me.value?.roles.some(({ name }) => name === "user-admin");
  const Page = section?.page;
  return (
    <Frame title={section?.label ?? "Administration"} crumbs={[{ label: "Administration", href: "/admin" }]}>
      {isManager ? (
        <div class="admin">
          <nav class="subnav" aria-label="Administration">
            {SECTIONS.map(({ name, label }) => (
              <a key={name} href={`/admin/${name}`} aria-current={name === section?.name ? "page" : undefined}>
                {label}
              </a>
            ))}
          </nav>
          <div class="page narrow">
            {Page ? <Page /> : <Empty icon="search" title="No such section" text="The address names none of these." />}
          </div>
        </div>
      ) : (
        <Empty
          icon="shield"
          title="Not for this account"
          text="Owners and user administrators look after people and models here."
        />
      )}
    </Frame>
  );
}
