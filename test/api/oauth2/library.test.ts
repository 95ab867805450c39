// The whole flow with a client library, which performs the checks that the standards require.
import { expect, test } from "bun:test";
import * as client from "openid-client";
import { forFile } from "#test/support/for-file.ts";
import { openOAuth2 } from "./world.ts";

const { server, ada, agree, getTokenStatus } = await forFile(openOAuth2());

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

/** Returns the URL the browser returns to after ada's approval. */
const approveAndReturn = async (
  config: client.Configuration,
  verifier: string,
  more: Record<string, string>,
): Promise<URL> => {
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: REDIRECT,
    scope: "user:read",
    state: "a-state",
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...more,
  });
  expect(url.pathname).toBe("/oauth2/authorize");
  return agree(ada, Object.fromEntries(url.searchParams));
};
const checks = (verifier: string) => ({ pkceCodeVerifier: verifier, expectedState: "a-state" });

test("[OA-18] a library registers, requests a token for this server, refreshes it, and revokes it", async () => {
  const config = await registerProgram();
  expect(config.serverMetadata().authorization_response_iss_parameter_supported).toBe(true);
  const verifier = client.randomPKCECodeVerifier();
  const resource = server.url.origin;
  const redirect = await approveAndReturn(config, verifier, { resource });
  expect(redirect.searchParams.get("iss")).toBe(server.url.origin);
  const tokens = await client.authorizationCodeGrant(config, redirect, checks(verifier), { resource });
  expect(await getTokenStatus(tokens.access_token)).toBe(200);
  const renewed = await client.refreshTokenGrant(config, tokens.refresh_token ?? "", { resource });
  expect([await getTokenStatus(tokens.access_token), await getTokenStatus(renewed.access_token)]).toEqual([401, 200]);
  await client.tokenRevocation(config, renewed.access_token);
  expect(await getTokenStatus(renewed.access_token)).toBe(401);
});

test("[OA-18] a library rejects a response that names another server, or none", async () => {
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
  // The code was not used up.
  expect(
    await getTokenStatus((await client.authorizationCodeGrant(config, redirect, checks(verifier))).access_token),
  ).toBe(200);
});

test("[OA-18] a token for another resource is refused when requested, redeemed and refreshed", async () => {
  const config = await registerProgram();
  const verifier = client.randomPKCECodeVerifier();
  const resource = "https://elsewhere.example/mcp";
  const refused = await approveAndReturn(config, verifier, { resource });
  expect(refused.searchParams.get("error")).toBe("invalid_target");
  const getError = (thrown: { error?: string }): string | undefined => thrown.error;
  const redirect = await approveAndReturn(config, verifier, {});
  expect(await client.authorizationCodeGrant(config, redirect, checks(verifier), { resource }).catch(getError)).toBe(
    "invalid_target",
  );
  const tokens = await client.authorizationCodeGrant(config, redirect, checks(verifier));
  const renewing = client.refreshTokenGrant(config, tokens.refresh_token ?? "", { resource });
  expect(await renewing.catch(getError)).toBe("invalid_target");
});
