/** The mails that the service sends: what they say, and the way to whoever delivers them. */
import type { Config } from "../config.ts";
import type { Env } from "../env.ts";
import { seal, unseal } from "../identity/sealing.ts";
import type { OutboxMessage } from "../store/outbox.ts";

export interface Mail {
  to: string;
  subject: string;
  text: string;
  html: string;
}

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

export function verificationMail(to: string, code: string): Mail {
  return mail(to, `${code} is your Underpass code`, [
    `Your code is ${code}. It is good for 10 minutes.`,
    "Somebody, probably you, signed up for Underpass with this address. If it was not you, ignore this mail: without the code nothing happens.",
  ]);
}

/** To whoever signs up twice: the answer itself must not say that the account exists. */
export function alreadyRegisteredMail(to: string, config: Config): Mail {
  return mail(to, "You already have an Underpass account", [
    `Somebody, probably you, tried to sign up for Underpass with this address. It has an account already: sign in at ${config.publicOrigin}.`,
    "If it was not you, ignore this mail: nothing has changed.",
  ]);
}

function mail(to: string, subject: string, paragraphs: string[]): Mail {
  const html = paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`).join("\n");
  return {
    to,
    subject,
    text: `${paragraphs.join("\n\n")}\n`,
    html: `<!doctype html>\n<html lang="en"><body>\n${html}\n</body></html>\n`,
  };
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
