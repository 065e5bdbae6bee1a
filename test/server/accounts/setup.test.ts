import { afterAll, beforeAll, expect, test } from "vitest";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { SetupResult, SetupState } from "../../../protocol/schemas/accounts/devices.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ shared: false });
});
afterAll(() => api.stop());

const setUp = (body: object) => api.anonymous.post<SetupResult>("/setup", body);

test("the setup refuses a wrong code without any change", async () => {
  const { setupCode: code } = api.server;
  for (const wrong of ["", "0000", `${code}X`]) {
    expect(await setUp({ code: wrong })).toMatchObject({
      status: 400,
      body: { error: "invalid_code" },
    });
  }
  expect(await api.sql("select 1 from users")).toHaveLength(0);
});

test.each([
  ["an invalid address", { email: "no-at-sign" }, "email"],
  ["a short password", { password: "short" }, "password"],
])("the setup refuses %s", async (_, chosen, field) => {
  expect(await setUp({ code: api.server.setupCode, ...chosen })).toMatchObject({
    status: 400,
    body: { fields: [{ path: field }] },
  });
});

test("the setup accepts the code in lower case and without hyphens", async () => {
  const typed = ` ${api.server.setupCode!.toLowerCase().replaceAll("-", "")} `;
  // The address is checked after the code, and the setup creates nothing.
  expect(await setUp({ code: typed, email: "no-at-sign" })).toMatchObject({
    status: 400,
    body: { fields: [{ path: "email" }] },
  });
});

test("a set-up without a label mints no token, and after it none is needed", async () => {
  await using another = await startApi({ shared: false });
  const getState = async () => (await another.anonymous.get<SetupState>("/setup")).body;
  expect(await getState()).toEqual({ needed: true, mail: "files" });
  const account = { email: "ada@localhost", password: "correct horse battery staple" };
  const request = { code: another.server.setupCode, label: null, ...account };
  const { status, body } = await another.anonymous.post<SetupResult>("/setup", request);
  expect({ status, body }).toEqual({ status: 201, body: { email: account.email } });
  expect(await another.sql("select 1 from tokens")).toHaveLength(0);
  expect(await getState()).toEqual({ needed: false, mail: "files" });
});

test("the setup works even if other accounts have signed up, and takes over an unconfirmed sign-up with its address", async () => {
  const { setupCode: code } = api.server;
  expect(api.server.output).not.toContain("pages of tunnels");
  const confirmed = await api.signUp();
  const stranger = { email: "owner@tunnels.example", password: "the password of a stranger" };
  await api.anonymous.post("/auth/signup", stranger);
  expect(await setUp({ code, email: confirmed.email })).toMatchObject({
    status: 409,
    body: { error: "duplicate_name" },
  });
  expect((await confirmed.get<Me>("/auth/me")).body.is_superadmin).toBe(false);

  await using another = await startApi({
    env: {
      SERVICE_DOMAIN: "tunnels.example",
      API_HOSTS: "api.tunnels.example,localhost,127.0.0.1",
    },
  });
  expect(another.server.output).toMatch(
    /pages of tunnels .* and the API \(api\.tunnels\.example\)/,
  );
  await another.anonymous.post("/auth/signup", stranger);
  const mailed = await another.getMailedCode(stranger.email);
  const owner = { code: another.server.setupCode, email: stranger.email };
  const { status, body } = await another.anonymous.post<SetupResult>("/setup", owner);
  expect(status).toBe(201);
  const verification = { email: stranger.email, code: mailed };
  const verified = await another.anonymous.post("/auth/verify-email-otp", verification);
  expect(verified.status).toBe(400);
  expect((await another.anonymous.post("/auth/login", stranger)).status).toBe(401);
  const signedIn = await another.logIn(stranger.email, body.password!);
  expect((await signedIn.get<Me>("/auth/me")).body.is_superadmin).toBe(true);
});

test("the setup creates one owner, also with concurrent requests, with a token that opens tunnels", async () => {
  const { setupCode: code } = api.server;
  const replies = await Promise.all(Array.from({ length: 20 }, () => setUp({ code })));
  const created = replies.filter(({ status }) => status === 201);
  expect(created).toHaveLength(1);
  expect(replies.filter(({ status }) => status === 404)).toHaveLength(19);

  const { email, password, wire_bytes_b64: token } = created[0]!.body;
  expect(email).toBe("owner@localhost");
  const owner = await api.logIn(email, password!);
  const { body } = await owner.get<Me>("/auth/me");
  expect(body).toMatchObject({ active_org: { role: "owner" }, is_superadmin: true });

  // Made in one transaction, and nevertheless listed in their order.
  const events = await api.sql(
    "select action, count(*) over (partition by created_at) as same_time from audit_events where user_id = $1 order by created_at limit 2",
    [body.user.id],
  );
  expect(events).toEqual([
    { action: "account_created", same_time: "1" },
    { action: "token_created", same_time: "1" },
  ]);

  const agent = await api.connectAgent(token, { port: 3000, subdomain: "first" });
  expect(agent.code).toBeUndefined();
  agent.socket?.close();
});

test("the setup answers 404 once there is an owner, and says how to sign in", async () => {
  const { setupCode: code } = api.server;
  expect(await setUp({ code })).toMatchObject({
    status: 404,
    body: { error: "not_found", message: expect.stringContaining("underpass login") },
  });
  expect((await setUp({ code: "wrong" })).status).toBe(404);
});
