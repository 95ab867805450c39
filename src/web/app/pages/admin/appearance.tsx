// The deployment's appearance: its name, logo and announcements.
import { useSignal } from "@preact/signals";
import type { Banner, UpdateAppearance } from "#schema/deployment/appearance.ts";
import { call } from "../../data/api.ts";
import { applyAppearance } from "../../data/branding.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { confirmAction } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Area, Field, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const MAX_BANNERS = 5;

const changeAppearance = async (body: UpdateAppearance): Promise<void> =>
  applyAppearance(await call("PUT /appearance", { body }));

type FormState = { readonly form: "face" } | { readonly form: "banner"; readonly index: number };

export const Appearance = () => {
  const { state, reload } = useResource("appearance", () => call("GET /appearance"));
  const openForm = useSignal<FormState | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the appearance" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const { announcement_banners: banners, application_name, logo_url } = data;
  const close = (): void => {
    openForm.value = undefined;
  };
  const saveAppearance = async (body: UpdateAppearance): Promise<void> => {
    await changeAppearance(body);
    await reload();
  };
  const saveBanner = (index: number, banner: Banner): Promise<void> =>
    saveAppearance({ announcement_banners: [...banners.slice(0, index), banner, ...banners.slice(index + 1)] });
  const confirmDelete = (index: number): void =>
    confirmAction({
      title: "Delete the announcement",
      text: "Users no longer see it.",
      confirmLabel: "Delete announcement",
      cancelLabel: "Keep it",
      isDanger: true,
      act: () => saveAppearance({ announcement_banners: banners.filter((_, position) => position !== index) }),
    });
  const form = openForm.value;
  return (
    <>
      <section class="panel" aria-labelledby="face">
        <header>
          <h2 id="face">Name and logo</h2>
          <span class="push">
            <Button small onPress={() => (openForm.value = { form: "face" })}>
              Edit
            </Button>
          </span>
        </header>
        <div class="body">
          <dl class="kv">
            <dt>Name</dt>
            <dd class="clip">{application_name}</dd>
            <dt>Logo</dt>
            <dd class="clip">{logo_url === "" ? "Default" : <img class="i" src={logo_url} alt={logo_url} />}</dd>
          </dl>
        </div>
      </section>
      <section class="stack" aria-labelledby="announcements">
        <div class="head line">
          <h2 id="announcements">Announcements</h2>
          <span class="push">
            <Button
              small
              icon="plus"
              disabled={banners.length >= MAX_BANNERS}
              onPress={() => (openForm.value = { form: "banner", index: banners.length })}
            >
              Add announcement
            </Button>
          </span>
        </div>
        {banners.length === 0 ? (
          <Empty
            icon="bell"
            title="No announcements"
            text="Announcements are shown at the top of every page, to all users."
          />
        ) : (
          <ul class="panel list">
            {banners.map((banner, index) => (
              <li key={`${index} ${banner.message}`} class="item">
                <Switch
                  label={banner.message}
                  checked={banner.enabled}
                  onSwitch={(enabled) => void saveBanner(index, { ...banner, enabled }).catch(showError)}
                />
                <span class="line">
                  <Button
                    small
                    label={`Edit ${banner.message}`}
                    onPress={() => (openForm.value = { form: "banner", index })}
                  >
                    Edit
                  </Button>
                  <IconButton icon="trash" label={`Delete ${banner.message}`} onPress={() => confirmDelete(index)} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {form?.form === "face" && (
        <FormDialog
          title="Name and logo"
          submitLabel="Save"
          onClose={close}
          act={async ({ application_name = "", logo_url = "" }) => {
            await saveAppearance({ application_name, logo_url });
            showToast("Appearance saved");
          }}
        >
          {(problems) => (
            <>
              <Field
                label="Name"
                name="application_name"
                maxLength={64}
                defaultValue={application_name}
                hint="Leave empty for Slipway."
                error={problems.application_name}
              />
              <Field
                label="Logo URL"
                name="logo_url"
                maxLength={2_048}
                defaultValue={logo_url}
                hint="An https URL, or an image as data:image/…. Leave empty for the default logo."
                error={problems.logo_url}
              />
            </>
          )}
        </FormDialog>
      )}
      {form?.form === "banner" && (
        <BannerForm
          banner={banners[form.index]}
          onClose={close}
          saveBanner={(banner) => saveBanner(form.index, banner)}
        />
      )}
    </>
  );
};

type BannerFormProps = {
  /** Undefined for a new banner. */
  readonly banner: Banner | undefined;
  readonly saveBanner: (banner: Banner) => Promise<void>;
  readonly onClose: () => void;
};

const BannerForm = ({ banner, saveBanner, onClose }: BannerFormProps) => (
  <FormDialog
    title={banner ? "Edit announcement" : "Add announcement"}
    submitLabel={banner ? "Save announcement" : "Add announcement"}
    onClose={onClose}
    act={({ message = "", background_color = "" }) =>
      saveBanner({ enabled: banner?.enabled ?? true, message, background_color })
    }
  >
    {(problems) => (
      <>
        <Area
          label="Message"
          name="message"
          required
          maxLength={3_000}
          defaultValue={banner?.message}
          error={problems.message ?? problems["announcement_banners.0.message"]}
        />
        <Field
          label="Color"
          name="background_color"
          pattern="#[0-9a-fA-F]{6}"
          title="A color such as #1f6feb"
          placeholder="#1f6feb"
          defaultValue={banner?.background_color}
          hint="Leave empty for the neutral color."
          error={problems.background_color}
        />
      </>
    )}
  </FormDialog>
);
