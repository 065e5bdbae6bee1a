/** Lists are read while the caller's rights are checked: a caller who has lost them gets none of the rows. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createCaller,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

const FOR_AGENTS = ["/tunnels", "/tokens", "/private-networks", "/webhook-receivers"];
const LISTS = [...FOR_AGENTS, "/domains", "/reserved-subdomains", "/projects"];
/** A page that begins after an unknown row is refused with 400, but only to callers with rights. */
const withUnknownPosition = (path: string) => `${path}?after=${crypto.randomUUID()}`;

let api: TestApi;
let owner: Person;
let token: Awaited<ReturnType<typeof mintToken>>;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  token = await mintToken(owner);
});
afterAll(() => api.stop());

const UNAUTHORIZED = expect.objectContaining({ error: "unauthorized" }) as unknown;

describe.each(LISTS)("GET %s", (path) => {
  test("a member gets rows, and 400 for an unknown position", async () => {
    expect(await owner.get(path)).toMatchObject({
      status: 200,
      body: expect.any(Array) as unknown,
    });
    expect((await owner.get(withUnknownPosition(path))).status).toBe(400);
  });

  test("after the end of the session, nothing", async () => {
    const member = await api.logIn(owner.email, owner.password);
    expect((await member.post("/auth/logout")).status).toBe(200);
    for (const url of [path, withUnknownPosition(path)])
      expect(await member.get(url)).toMatchObject({ status: 401, body: UNAUTHORIZED });
  });

  test("after the removal from the organization, nothing", async () => {
    const viewer = await api.colleague(owner, "viewer");
    expect((await viewer.get(path)).status).toBe(200);
    const member = `/orgs/${owner.orgId}/members/${viewer.userId}`;
    expect((await owner.delete(member)).status).toBe(200);
    expect(await viewer.get(path)).toMatchObject({ status: 401, body: UNAUTHORIZED });
  });
});

test.each(FOR_AGENTS)("GET %s with a token", async (path) => {
  const revoked = await mintToken(owner);
  const call = (bearer: string) =>
    createCaller(api.server, { authorization: `Bearer ${bearer}` }).get(path);
  expect((await call(token.wireBytes)).status).toBe(200);
  expect((await call(revoked.wireBytes)).status).toBe(200);
  expect((await owner.delete(`/tokens/${revoked.nonce}`)).status).toBe(200);
  expect(await call(revoked.wireBytes)).toMatchObject({ status: 401, body: UNAUTHORIZED });
});
