// The whole OAuth 2 flow with a client library that performs the checks of the standards.
import { expect, test } from "bun:test";
import * as client from "openid-client";
import { forFile } from "#test/support/for-file.ts";
import { openOAuth2 } from "./world.ts";

const { server, ada, approve, getTokenStatus } = await forFile(openOAuth2());

/** Test servers have no certificate. */
const insecure = { execute: [client.allowInsecureRequests] };
const REDIRECT = "http://127.0.0.1/callback";

/** Returns the configuration of a program that has registered itself. */
const registerProgram = (): Promise<client.Configuration> =>
  client.dynamicClientRegistration(
    server.url,
    { client_name: "Library", redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" },
    client.None(),
    { algorithm: "oauth2", ...insecure },
  );

/** Returns the URL to which the browser returns after ada's approval. */
const approveAndReturn = async (
  config: client.Configuration,
  verifier: string,
  parameters: Record<string, string>,
): Promise<URL> => {
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: REDIRECT,
    scope: "user:read",
    state: "a-state",
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...parameters,
  });
  expect(url.pathname).toBe("/oauth2/authorize");
  return approve(ada, Object.fromEntries(url.searchParams));
};
const checks = (verifier: string) => ({ pkceCodeVerifier: verifier, expectedState: "a-state" });

test("[OA-18] the library registers itself, and gets, refreshes and revokes a token", async () => {
  const config = await registerProgram();
  expect(config.serverMetadata().authorization_response_iss_parameter_supported).toBe(true);
  const verifier = client.randomPKCECodeVerifier();
  const resource = server.url.origin;
  const redirect = await approveAndReturn(config, verifier, { resource });
  expect(redirect.searchParams.get("iss")).toBe(server.url.origin);
  const tokens = await client.authorizationCodeGrant(config, redirect, checks(verifier), { resource });
  expect(await getTokenStatus(tokens.access_token)).toBe(200);
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? "", { resource });
  expect([await getTokenStatus(tokens.access_token), await getTokenStatus(refreshed.access_token)]).toEqual([401, 200]);
  await client.tokenRevocation(config, refreshed.access_token);
  expect(await getTokenStatus(refreshed.access_token)).toBe(401);
});

test("[OA-18] the library rejects a response that names another server, or none", async () => {
  const config = await registerProgram();
  const verifier = client.randomPKCECodeVerifier();
  const redirect = await approveAndReturn(config, verifier, {});
  for (const iss of ["https://elsewhere.example", undefined]) {
    const changed = new URL(redirect);
    changed.searchParams.delete("iss");
    if (iss !== undefined) changed.searchParams.set("iss", iss);
    const error = await client.authorizationCodeGrant(config, changed, checks(verifier)).catch((thrown) => thrown);
    expect(String(error.cause ?? error)).toContain("iss");
  }
  // The code is still valid.
  expect(
    await getTokenStatus((await client.authorizationCodeGrant(config, redirect, checks(verifier))).access_token),
  ).toBe(200);
});

test("[OA-18] rejects a request, redemption or refresh of a token for another resource", async () => {
  const config = await registerProgram();
  const verifier = client.randomPKCECodeVerifier();
  const resource = "https://elsewhere.example/mcp";
  const redirectWithError = await approveAndReturn(config, verifier, { resource });
  expect(redirectWithError.searchParams.get("error")).toBe("invalid_target");
  const getError = (thrown: { error?: string }): string | undefined => thrown.error;
  const redirect = await approveAndReturn(config, verifier, {});
  expect(await client.authorizationCodeGrant(config, redirect, checks(verifier), { resource }).catch(getError)).toBe(
    "invalid_target",
  );
  const tokens = await client.authorizationCodeGrant(config, redirect, checks(verifier));
  const refreshing = client.refreshTokenGrant(config, tokens.refresh_token ?? "", { resource });
  expect(await refreshing.catch(getError)).toBe("invalid_target");
});
