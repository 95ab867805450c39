// Administration: one section at a time, each with its own address.
import { useRoute } from "preact-iso";
import { isSiteOwner, me } from "../../data/session.ts";
import { Empty } from "../../parts/empty.tsx";
import { type Section, Sections } from "../../parts/sections.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Models } from "./models.tsx";
import { People } from "./people.tsx";

const SECTIONS: readonly Section[] = [
  { name: "people", label: "People", page: People },
  { name: "models", label: "Models", page: Models },
];

export default function AdminPage() {
  const { params } = useRoute();
  const section = SECTIONS.find(({ name }) => name === (params.tab ?? "people"));
  const isManager = isSiteOwner.value || me.value?.roles.some(({ name }) => name === "user-admin");
  return (
    <Frame title={section?.label ?? "Administration"} crumbs={[{ label: "Administration", href: "/admin" }]}>
      {isManager ? (
        <Sections label="Administration" path="/admin" sections={SECTIONS} open={section} />
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
