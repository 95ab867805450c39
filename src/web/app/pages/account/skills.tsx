// Skills: instructions that the user has written for all of their chats. A model reads a skill when its description fits.
import { useSignal } from "@preact/signals";
import type { UserSkill } from "#schema/users/user-skill.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Area, Field, NameField } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";

export const Skills = () => {
  const { state, reload } = useResource("skills", () => call("GET /users/me/skills"));
  const openForm = useSignal<{ readonly skill?: UserSkill } | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load your skills" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const editSkill = async ({ id }: UserSkill): Promise<void> => {
    openForm.value = { skill: await call("GET /users/me/skills/:skill", { path: { skill: id } }) };
  };
  const confirmDelete = ({ id, name }: UserSkill): void =>
    confirmAction({
      title: `Delete ${name}`,
      text: "Chats can't use it anymore.",
      confirmLabel: "Delete skill",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /users/me/skills/:skill", { path: { skill: id } });
        await reload();
        showToast(`${name} deleted`);
      },
    });
  const writeButton = (
    <Button look="primary" icon="plus" onPress={setTo(openForm, {})}>
      Write skill
    </Button>
  );
  return (
    <section class="stack" aria-labelledby="skills">
      <div class="head">
        <h2 id="skills">Your skills</h2>
        {data.length > 0 && <span class="push">{writeButton}</span>}
      </div>
      {data.length === 0 ? (
        <Empty
          icon="spark"
          title="No skills yet"
          text="A skill tells the model how you want something done, such as how to write a commit message. Chats load a skill when they need it."
        >
          {writeButton}
        </Empty>
      ) : (
        <ul class="panel list">
          {data.map((skill) => (
            <li key={skill.id} class="item">
              <span class="med clip mono">{skill.name}</span>
              <Menu
                label={`More for ${skill.name}`}
                small
                items={() => [
                  { icon: "file", label: "Edit…", act: () => editSkill(skill) },
                  { icon: "trash", label: "Delete…", isDanger: true, act: () => confirmDelete(skill) },
                ]}
              />
              <span class="small mut">
                {skill.description} Changed <Time at={skill.updated_at} ago />.
              </span>
            </li>
          ))}
        </ul>
      )}
      {openForm.value && (
        <SkillForm
          skill={openForm.value.skill}
          onClose={() => {
            openForm.value = undefined;
            void reload();
          }}
        />
      )}
    </section>
  );
};

const SkillForm = ({ skill, onClose }: { skill: UserSkill | undefined; onClose: () => void }) => (
  <FormDialog
    title={skill ? `Edit ${skill.name}` : "Write skill"}
    thing={skill?.name}
    submitLabel={skill ? "Save skill" : "Write skill"}
    onClose={onClose}
    act={async ({ name = "", description = "", content = "" }) => {
      const body = { name, description, content };
      if (skill) await call("PATCH /users/me/skills/:skill", { path: { skill: skill.id }, body });
      else await call("POST /users/me/skills", { body });
      showToast(`${name} saved`);
    }}
  >
    {(problems) => (
      <>
        <NameField
          label="Name"
          name="name"
          maxLength={64}
          placeholder="write-commits"
          defaultValue={skill?.name}
          hint="Lowercase letters, digits and hyphens."
          error={problems.name}
        />
        <Field
          label="When to use it"
          name="description"
          required
          maxLength={1024}
          placeholder="Before writing a commit message."
          defaultValue={skill?.description}
          error={problems.description}
        />
        <Area
          label="Text"
          name="content"
          rows={10}
          required
          defaultValue={skill?.content}
          hint="Markdown."
          error={problems.content}
        />
      </>
    )}
  </FormDialog>
);
