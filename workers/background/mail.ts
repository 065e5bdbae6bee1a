/** The way of a mail: sealed into the outbox, and out of it to whoever delivers it. */
import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import { seal, unseal } from "../identity/sealing.ts";
import type { OutboxMessage } from "../store/outbox.ts";
import type { Mail } from "./mails.ts";

const PURPOSE = "mail";

/** Ready for the outbox. */
export async function sealMail(config: Config, mail: Mail): Promise<OutboxMessage> {
  return { kind: "mail", payload: { sealed: await seal(config, PURPOSE, JSON.stringify(mail)) } };
}

/** @throws Error when it was not delivered. */
export async function sendMail(env: Env, config: Config, sealed: string): Promise<void> {
  const mail = JSON.parse(await unseal(config, PURPOSE, sealed)) as Mail;
  const response = await mailGateway(env)("/mail", {
    method: "POST",
    headers: {
      authorization: `Bearer ${env.GATEWAY_SECRET ?? ""}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ ...mail, from: config.MAIL_FROM }),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the mail gateway answered ${response.status}`);
}

type Send = (path: string, init: RequestInit) => Promise<Response>;

function mailGateway({ MAIL_GATEWAY: gateway, GATEWAY_URL: url }: Env): Send {
  if (gateway) return (path, init) => gateway.fetch(`http://gateway${path}`, init);
  if (url !== undefined) return (path, init) => fetch(new URL(path, url), init);
  throw new Error("there is no mail gateway");
}
