/** How each vendor signs its deliveries, and where the user enters the URL of the receiver at the vendor. */
import type { ReactNode } from "react";
import type { Validator } from "../../../protocol/schemas/webhooks.ts";

export interface Vendor {
  name: string;
  /** The headers that contain the signature, each with a placeholder for its value. */
  headers: readonly string[];
  /** The text whose HMAC is computed. */
  signedText: ReactNode;
  /** Whether the signature covers a timestamp, which must be near the server's time. */
  hasTimestamp: boolean;
  /** Where a delivery has its id. A delivery with the id of an earlier one is a repetition. */
  deliveryId: ReactNode;
  /** Whether the vendor generates the secret, so that the user can't choose it. */
  makesSecret: boolean;
  secretHint: string;
  /** The steps to take at the vendor. */
  setup: ReactNode;
}

export const VENDORS: Record<Validator, Vendor> = {
  code_host: {
    name: "GitHub",
    headers: ["X-Hub-Signature-256: sha256=<hex>"],
    signedText: "the body",
    hasTimestamp: false,
    deliveryId: <code>X-GitHub-Delivery</code>,
    makesSecret: false,
    secretHint: "Choose any secret. GitHub asks for the same one.",
    setup:
      "In the settings of the repository or the organization, under Webhooks, add a webhook with this URL, the content type that your server reads, and the secret of this receiver.",
  },
  chat_app: {
    name: "Slack",
    headers: ["X-Slack-Signature: v0=<hex>", "X-Slack-Request-Timestamp: <seconds>"],
    signedText: (
      <>
        <code>v0:</code>, the timestamp, <code>:</code> and the body
      </>
    ),
    hasTimestamp: true,
    deliveryId: (
      <>
        <code>event_id</code> of the body, or its <code>id</code>
      </>
    ),
    makesSecret: true,
    secretHint: "The signing secret, on the page Basic Information of the app.",
    setup:
      "Enter this URL as the request URL of the event subscriptions, of slash commands or of interactivity. The receiver answers Slack's verification challenge itself.",
  },
  payments: {
    name: "Stripe",
    headers: ["Stripe-Signature: t=<seconds>,v1=<hex>"],
    signedText: (
      <>
        the timestamp, <code>.</code> and the body
      </>
    ),
    hasTimestamp: true,
    deliveryId: (
      <>
        <code>event_id</code> of the body, or its <code>id</code>
      </>
    ),
    makesSecret: true,
    secretHint: "The signing secret of the endpoint, which begins with whsec_.",
    setup:
      "Add an endpoint with this URL. Stripe then shows its signing secret: if the receiver has another one, rotate the secret.",
  },
  generic_hmac_sha256: {
    name: "Any other",
    headers: ["X-Signature-256: sha256=<hex>"],
    signedText: "the body",
    hasTimestamp: false,
    deliveryId: <code>X-Delivery-Id</code>,
    makesSecret: false,
    secretHint: "Choose any secret. The sender needs the same one.",
    setup:
      "Anything that can compute an HMAC can send: POST the body to this URL, with the signature in the header.",
  },
};

export const VENDOR_OPTIONS = Object.entries(VENDORS).map(([value, { name }]) => ({
  value,
  label: value === "generic_hmac_sha256" ? `${name} (HMAC-SHA256)` : name,
}));
