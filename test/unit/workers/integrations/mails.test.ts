/** Rules for all mails of the service, and user input in them. */
import PostalMime from "postal-mime";
import { describe, expect, test } from "vitest";
import { encodeDisplayName, encodeHeader } from "../../../../shared/text/encoded-words.ts";
import type { Mail } from "../../../../workers/integrations/mail/compose-mail.ts";
import * as domainMails from "../../../../workers/integrations/mail/domain-mails.ts";
import * as mails from "../../../../workers/integrations/mail/mails.ts";
import { isPermanentRefusal } from "../../../../protocol/mail-refusals.ts";
import type { Config } from "../../../../workers/config/config.ts";

const config = { publicOrigin: "https://underpass.example" } as Config;
const TO = "to@example.com";
const NASTY = `<img src="https://evil.example/x"> "& 'ü' \r\nBcc: eve@example.com`;
const expiresAt = new Date("2026-03-01T12:30:00Z");
const mailedToken = { token: "t0ken-of_it", expiresAt };
const invitation = { inviter: "boss@example.com", organization: NASTY, ...mailedToken };

const downgrade = {
  organization: NASTY,
  from: "team",
  to: "free",
  reason: "canceled",
  overLimits: [
    { what: "reserved_subdomains", count: 7, allowed: 0 },
    { what: "tunnel_passwords", count: 2, allowed: 0 },
    { what: "identity_gates", count: 1, allowed: 0 },
    { what: "master_keys", count: 3, allowed: 0 },
  ],
} satisfies Parameters<typeof mails.downgradeMail>[1];
const overdue = { organization: NASTY, plan: "team", graceEndsAt: new Date(0) };

const missingProof = {
  domain: "shop.example",
  recordName: "_svc-challenge.shop.example",
  verificationToken: "t0ken-of_it",
  releaseAt: new Date(0),
};
const loss = { domain: "shop.example", reason: "proof_missing" } as const;

const ALL: Record<keyof typeof mails | keyof typeof domainMails, Mail> = {
  verificationMail: mails.verificationMail(TO, "012345", expiresAt),
  alreadyRegisteredMail: mails.alreadyRegisteredMail(TO, config),
  passwordResetMail: mails.passwordResetMail(TO, mailedToken, config),
  choosePasswordMail: mails.choosePasswordMail(TO, mailedToken, config),
  passwordChangedMail: mails.passwordChangedMail(TO, { keepTokens: false }, config),
  secondFactorMail: mails.secondFactorMail(TO, "on", config),
  removalRequestedMail: mails.removalRequestedMail(
    TO,
    { token: "t0ken-of_it", usableAt: new Date(0) },
    config,
  ),
  invitationMail: mails.invitationMail(TO, invitation, config),
  identityLinkedMail: mails.identityLinkedMail(TO, "id.example.com", config),
  downgradeMail: mails.downgradeMail(TO, downgrade, config),
  overdueMail: mails.overdueMail(TO, overdue, config),
  proofMissingMail: domainMails.proofMissingMail(TO, missingProof, config),
  domainReleasedMail: domainMails.domainReleasedMail(TO, loss, config),
};

const splitWords = (text: string) => text.split(/\s+/).filter((word) => word !== "");
const toPlainText = (html: string) =>
  html
    .replace(/<title>.*<\/title>/s, "")
    .replace(/<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

describe.each(Object.entries(ALL))("%s", (_, mail) => {
  test("has the same text in both parts", () => {
    expect(splitWords(toPlainText(mail.html))).toEqual(splitWords(mail.text));
  });

  test("loads nothing, runs nothing, and has only the tags that it needs", () => {
    const tags = new Set([...mail.html.matchAll(/<([a-z!]+)/gi)].map(([, tag]) => tag));
    const needed = [
      "!doctype",
      "html",
      "head",
      "meta",
      "title",
      "body",
      "div",
      "p",
      "strong",
      "br",
      "a",
    ];
    expect([...tags].filter((tag) => !needed.includes(tag!))).toEqual([]);
    expect(mail.html).not.toMatch(/<[^>]*\s(src|on\w+|background)\s*=/i);
    expect(mail.html).not.toContain("url(");
  });

  test("links only to the service's own origin, with the URL as the text", () => {
    for (const [, href, shown] of mail.html.matchAll(/<a href="([^"]*)"[^>]*>([^<]*)<\/a>/g)) {
      expect(new URL(href!).origin).toBe(config.publicOrigin);
      expect(new URL(href!).search).toBe("");
      expect(shown).toBe(href);
    }
  });
});

test.each([
  ["Your account", "/me", [ALL.secondFactorMail, ALL.identityLinkedMail]],
  ["Plan and billing", "/billing", [ALL.downgradeMail, ALL.overdueMail]],
  ["Your domains", "/domains", [ALL.proofMissingMail, ALL.domainReleasedMail]],
])("the link %j leads to the page %s", (label, path, of) => {
  for (const { text } of of) expect(text).toContain(`${label}:\n${config.publicOrigin}${path}\n`);
});

test("a code or link says until when it is valid, because its mail may arrive late", () => {
  const { verificationMail, passwordResetMail, choosePasswordMail, invitationMail } = ALL;
  for (const { text } of [verificationMail, passwordResetMail, choosePasswordMail, invitationMail])
    expect(text).toContain("until Sun, 01 Mar 2026 12:30:00 GMT");
});

test("a downgrade says what to remove, so that tunnels with a password work again", () => {
  expect(ALL.downgradeMail.text).toContain("or you remove the passwords.");
});

test("the name of an organization contains no link and no hidden text, in either part", () => {
  const organization = "Free \u202emoney\u202c: https://evil.example/x or www.evil\uff0eexample";
  for (const mail of [
    mails.invitationMail(TO, { ...invitation, organization }, config),
    mails.downgradeMail(TO, { ...downgrade, organization }, config),
    mails.overdueMail(TO, { ...overdue, organization }, config),
  ]) {
    for (const text of [mail.subject, mail.text, mail.html]) {
      expect(text).not.toMatch(/\p{Cf}/u);
      expect(text).not.toMatch(/evil[.\uff0e]example|:\/\/evil|www\.evil/);
    }
  }
});

test("user input is text in the body, and one line in a header", async () => {
  const { html, subject } = ALL.invitationMail;
  expect(html).not.toContain("<img");
  const raw = `Subject: ${encodeHeader(subject)}\r\nFrom: ${encodeDisplayName(NASTY)} <a@b>\r\n\r\ntext`;
  const parsed = await PostalMime.parse(raw);
  expect(parsed.subject).toBe(subject.replace(/[\r\n]+/g, " ").trim());
  expect(parsed.from).toEqual({ name: NASTY.replace(/[\r\n]+/g, " "), address: "a@b" });
  expect(parsed.bcc).toBeUndefined();
});

test.each([
  "plain",
  "",
  "ü",
  "=?utf-8?q?x?=",
  "a".repeat(500),
  "🚇".repeat(100),
  "a\tb\0c",
  'q"\\',
])("the header text %j arrives unchanged, in lines of limited length", async (text) => {
  const header = encodeHeader(text);
  for (const line of `Subject: ${header}`.split("\r\n")) expect(line.length).toBeLessThan(85);
  const { subject = "" } = await PostalMime.parse(`Subject: ${header}\r\n\r\ntext`);
  expect(subject).toBe(text.replace(/[\t\0]/g, " "));
  const { from } = await PostalMime.parse(`From: ${encodeDisplayName(text)} <a@b>\r\n\r\ntext`);
  expect(from?.name).toBe(text.replace(/[\t\0]/g, " "));
});

test.each([
  ["550 5.1.1 no such user", true],
  ["550-5.1.1 The email account\r\n550 5.1.1 does not exist", true],
  ["551 user not local", true],
  ["550 5.2.1 disabled", true],
  ["552 5.2.2 mailbox full", false],
  ["550 5.7.1 relaying denied", false],
  ["554 5.7.1 blocked", false],
  ["530 5.7.0 authentication required", false],
  ["530 log in first", false],
  ["450 4.2.1 mailbox busy", false],
  ["451 try later", false],
  ["", false],
])("the reply %j is a permanent refusal: %s", (reply, isPermanent) => {
  expect(isPermanentRefusal(reply)).toBe(isPermanent);
});
