// Wire shapes of sign-in with a cloud's instance identity (specification "Workspace agent endpoints").
import { Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const agent_name = t.Optional(
  t.String({
    maxLength: 64,
    description: "The name of the agent. Needed if several agents have the same instance ID.",
  }),
);

export const CloudAIdentity = namedObject("CloudAIdentity", {
  agent_name,
  document: t.String({
    maxLength: 32_768,
    description: "The identity document, byte for byte as the cloud provider returned it.",
  }),
  signature: t.String({ maxLength: 8_192, description: "The signature of the document: RSA with SHA-256, in Base64." }),
});

export const CloudBIdentity = namedObject("CloudBIdentity", {
  agent_name,
  encoding: t.Literal("pkcs7", { description: "The encoding of the signature. Must be `pkcs7`." }),
  signature: t.String({
    maxLength: 24_576,
    description: "The attested document: a signed PKCS#7 message in Base64.",
  }),
});

export const CloudCIdentity = namedObject("CloudCIdentity", {
  agent_name,
  json_web_token: t.String({ maxLength: 32_768, description: "The instance's identity token." }),
});

export const AgentSession = namedObject("AgentSession", {
  session_token: t.String({ description: "The agent's token. It remains the same until the next build." }),
});
