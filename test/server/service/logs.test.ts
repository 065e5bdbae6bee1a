/** The log while people use their accounts: it has no secret that opens one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../../../shared/in-parallel.ts";
import { LOG_LIMIT } from "../../../shared/log.ts";
import type { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  createCaller,
  getFirstCookie,
  mintToken,
  newEmail,
  PASSWORD,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import {
  startChallenge,
  generateCode,
  enableSecondFactor,
} from "../../harness/browser/second-factor.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

async function readMailedToken(email: string, page: string): Promise<string> {
  const link = new RegExp(`${page}#token=([\\w-]+)`);
  return waitUntil(async () =>
    (await api.readMailsTo(email)).map((mail) => link.exec(decodeMail(mail))?.[1]).find(Boolean),
  );
}

/** Quoted-printable breaks long lines, and encodes "=" as "=3D". */
function decodeMail(mail: string): string {
  return mail.replace(/=\r?\n/g, "").replaceAll("=3D", "=");
}

/** Renews the session, and signs in with each second factor. @returns every secret that was sent. */
async function useAccount(person: Person): Promise<string[]> {
  const renewed = await createCaller(api.server, { cookie: person.cookie }).post<{
    access_token: string;
  }>("/auth/refresh");
  const factor = await enableSecondFactor(api, person);
  const [first, second] = [await startChallenge(api, person), await startChallenge(api, person)];
  const code = generateCode(factor.secret, 1);
  const byCode = await passSecondFactor({ challenge_token: first, code });
  const [recovery_code = ""] = factor.recoveryCodes;
  const byRecovery = await passSecondFactor({ challenge_token: second, recovery_code });
  await person.post("/auth/mfa/disable", { password: PASSWORD });
  return [
    person.accessToken,
    person.cookie,
    renewed.body.access_token,
    getFirstCookie(renewed.headers),
    factor.secret,
    ...factor.recoveryCodes,
    ...[first, second, code],
    ...byCode,
    ...byRecovery,
  ];
}

async function passSecondFactor(body: object): Promise<string[]> {
  const reply = await api.anonymous.post<AccountSummary>("/auth/login/mfa", body);
  expect(reply.status).toBe(200);
  return [reply.body.access_token, getFirstCookie(reply.headers)];
}

/** Invites a member, authorizes a machine and mints a token. @returns every secret that was sent. */
async function issueCredentials(person: Person): Promise<string[]> {
  const guest = await api.owner();
  await person.post(`/orgs/${person.orgId}/invitations`, { email: guest.email, role: "member" });
  const invitation = await readMailedToken(guest.email, "/invitation");
  expect((await guest.post("/invitations/accept", { token: invitation })).status).toBe(200);
  const { body: device } = await api.anonymous.post<{ device_code: string; user_code: string }>(
    "/auth/cli/start",
    {},
  );
  await person.get(`/auth/cli/request?code=${device.user_code}`);
  const { body: machine } = await person.post<{ wire_bytes_b64: string }>("/auth/cli/authorize", {
    device_code: device.user_code,
  });
  await api.anonymous.post("/auth/cli/poll", { device_code: device.device_code });
  const { wireBytes } = await mintToken(person);
  return [invitation, device.device_code, device.user_code, machine.wire_bytes_b64, wireBytes];
}

async function resetPassword(email: string): Promise<string[]> {
  await api.anonymous.post("/auth/forgot", { email });
  const token = await readMailedToken(email, "/reset");
  const new_password = "another good password";
  expect((await api.anonymous.post("/auth/reset", { token, new_password })).status).toBe(200);
  return [token, new_password];
}

/** Six digits may be part of an id, so a code is searched for as a whole word. */
function isLogged(secret: string): boolean {
  const { output } = api.server;
  return /^\d+$/.test(secret)
    ? new RegExp(`\\b${secret}\\b`).test(output)
    : output.includes(secret);
}

test("no secret is in the log, wherever it was sent", async () => {
  const email = newEmail();
  await api.anonymous.post("/auth/signup", { email, password: PASSWORD });
  const code = await api.getMailedCode(email);
  await api.anonymous.post("/auth/verify-email-otp", { email, code });
  const person = await api.logIn(email, PASSWORD);
  const secrets = [
    PASSWORD,
    code,
    ...(await useAccount(person)),
    ...(await issueCredentials(person)),
    ...(await resetPassword(email)),
  ].map((secret) => secret.replace(/^qnt_refresh=/, ""));

  const { headers } = await api.anonymous.get("/auth/me");
  const lastId = headers.get("underpass-request-id")!;
  await waitUntil(() => Promise.resolve(api.server.output.includes(lastId)));
  expect(secrets.filter((secret) => secret.length < 6)).toEqual([]);
  expect(secrets.filter(isLogged)).toEqual([]);
});

test("a failed query is logged without its values", async () => {
  const { email } = await api.owner();
  await api.sql("alter table sessions rename to sessions_gone");
  await api.sql("alter table email_codes rename to email_codes_gone");
  await api.sql("alter table outbox rename to outbox_gone");
  const unknownEmail = newEmail();
  const statuses = await Promise.all([
    api.anonymous.post("/auth/login", { email, password: PASSWORD }),
    api.anonymous.post("/auth/signup", { email: unknownEmail, password: PASSWORD }),
    api.anonymous.post("/auth/forgot", { email }),
  ]).then((replies) => replies.map(({ status }) => status));
  try {
    expect(statuses).toEqual([500, 500, 202]);
    const queries = [
      'from \\"sessions\\"',
      'insert into \\"email_codes\\"',
      'insert into \\"outbox\\"',
    ];
    for (const query of queries) {
      const failed = (line: string) => line.includes("failed query: ") && line.includes(query);
      await waitUntil(() => Promise.resolve(api.server.output.split("\n").some(failed)));
    }
    expect(api.server.output).not.toMatch(/params:|\$argon2|v1\.[0-9a-f]{8}\./);
    expect(api.server.output).not.toContain(unknownEmail);
  } finally {
    for (const table of ["sessions", "email_codes", "outbox"]) {
      await api.sql(`alter table ${table}_gone rename to ${table}`);
    }
  }
});

test("many requests of one organization write a limited number of lines, and those of another are logged", async () => {
  const [busy, other] = [await api.owner(), await api.owner()];
  const countLines = (orgId: string) =>
    api.server.output
      .split("\n")
      .filter((line) => line.includes('"request"') && line.includes(orgId)).length;
  const paths = Array.from({ length: 3 * LOG_LIMIT.burst }, () => "/projects");
  const startedAt = Date.now();
  // Not all at once: the server limits the connections of an address.
  await inParallel(100, paths, async (path) => void (await busy.get(path)));
  await other.get("/projects");
  await waitUntil(() => Promise.resolve(countLines(other.orgId) > 0));
  const refilled = Math.ceil((Date.now() - startedAt) / LOG_LIMIT.refillMs);
  expect(countLines(busy.orgId)).toBeLessThanOrEqual(LOG_LIMIT.burst + refilled);
});
