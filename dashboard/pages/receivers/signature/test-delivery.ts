/** A delivery as the vendor would send it, signed in the browser with a secret that the page does not store. */
import type { ErrorBody } from "../../../../protocol/schemas/error-body.ts";
import type { Receiver, Validator } from "../../../../protocol/schemas/webhooks.ts";
import { REQUEST_ID_HEADER } from "../../../../protocol/errors.ts";
import { toHex, toUtf8 } from "../../../../shared/bytes.ts";
import { RequestError } from "../../../api/request.ts";
import { quoteForShell } from "../../../ui/text/shell.ts";

export const SAMPLE_BODY = '{"type":"test","message":"Hello from Underpass"}';

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

/** Browsers sign only on pages that were loaded over HTTPS or from this machine. */
export const canSign = window.isSecureContext;

/** @throws RequestError when the receiver refuses it. */
export async function sendTestDelivery(
  { id, validator }: Pick<Receiver, "id" | "validator">,
  secret: string,
  body: string,
): Promise<void> {
  const headers = {
    "content-type": "application/json",
    ...(await signBody(validator, secret, body, Math.floor(Date.now() / 1000))),
    // A new id, because the receiver does not store a delivery with a known one again.
    [validator === "code_host" ? "x-github-delivery" : "x-delivery-id"]:
      `test-${crypto.randomUUID()}`,
  };
  const response = await fetch(`/hooks/${id}`, {
    method: "POST",
    headers,
    body,
    credentials: "omit",
  }).catch(() => {
    throw new RequestError({}, null);
  });
  if (response.ok) return;
  const answer = (await response.json()) as ErrorBody;
  throw new RequestError(answer, response.headers.get(REQUEST_ID_HEADER));
}

async function signBody(
  validator: Validator,
  secret: string,
  body: string,
  seconds: number,
): Promise<Record<string, string>> {
  const key = await crypto.subtle.importKey("raw", toUtf8(secret), HMAC, false, ["sign"]);
  const sign = async (text: string) =>
    toHex(new Uint8Array(await crypto.subtle.sign(HMAC, key, toUtf8(text))));
  switch (validator) {
    case "code_host":
      return { "x-hub-signature-256": `sha256=${await sign(body)}` };
    case "chat_app":
      return {
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": `v0=${await sign(`v0:${seconds}:${body}`)}`,
      };
    case "payments":
      return { "stripe-signature": `t=${seconds},v1=${await sign(`${seconds}.${body}`)}` };
    case "generic_hmac_sha256":
      return { "x-signature-256": `sha256=${await sign(body)}` };
  }
}

interface SignatureScript {
  /** The command that prints the text to sign. */
  signedText: string;
  headers: readonly string[];
}

const SCRIPTS: Record<Validator, SignatureScript> = {
  code_host: {
    signedText: `printf %s "$BODY"`,
    headers: ["X-Hub-Signature-256: sha256=$SIGNATURE"],
  },
  chat_app: {
    signedText: `printf 'v0:%s:%s' "$TIME" "$BODY"`,
    headers: ["X-Slack-Request-Timestamp: $TIME", "X-Slack-Signature: v0=$SIGNATURE"],
  },
  payments: {
    signedText: `printf '%s.%s' "$TIME" "$BODY"`,
    headers: ["Stripe-Signature: t=$TIME,v1=$SIGNATURE"],
  },
  generic_hmac_sha256: {
    signedText: `printf %s "$BODY"`,
    headers: ["X-Signature-256: sha256=$SIGNATURE"],
  },
};

/** A script for any POSIX shell that signs the sample body with `openssl` and sends it with `curl`. */
export function formatTestScript({ validator, url }: Pick<Receiver, "validator" | "url">): string {
  const { signedText, headers } = SCRIPTS[validator];
  return [
    `SECRET='the secret of this receiver'`,
    `BODY=${quoteForShell(SAMPLE_BODY)}`,
    ...(signedText.includes("$TIME") ? ["TIME=$(date +%s)"] : []),
    `SIGNATURE=$(${signedText} | openssl dgst -sha256 -hmac "$SECRET" | sed 's/^.* //')`,
    `curl ${quoteForShell(url)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    ...headers.map((header) => `  -H "${header}" \\`),
    `  -d "$BODY"`,
  ].join("\n");
}
