// A deploy key that is not registered at the host yet: its public key, where to add it, and a retry button.
import type { DeployKey } from "#schema/users/deploy-key.ts";
import { Button } from "../../parts/button.tsx";
import { Secret } from "../../parts/secret.tsx";

type Props = { readonly deployKey: DeployKey; readonly again: () => Promise<void> };

export const NewDeployKey = ({ deployKey: { url, settings_url, public_key }, again }: Props) => (
  <section class="panel" aria-labelledby="deploy-key">
    <header>
      <h2 id="deploy-key">Deploy key</h2>
    </header>
    <div class="body stack">
      <p>
        Add this public key to the deploy keys{" "}
        {settings_url ? (
          <>
            in{" "}
            <a href={settings_url} target="_blank" rel="noreferrer">
              the repository's settings
            </a>
          </>
        ) : (
          <>
            in the settings of <span class="mono">{url}</span>
          </>
        )}
        , then try again. Give it write access if you want to push from workspaces.
      </p>
      <Secret label="Public key" text={public_key} />
    </div>
    <footer>
      <Button look="primary" onPress={again}>
        Try again
      </Button>
    </footer>
  </section>
);
