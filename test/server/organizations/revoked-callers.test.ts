/** Some routes read while the caller's rights are checked: a caller who has lost them gets none of the rows. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createCaller,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

const LISTS_FOR_AGENTS = ["/tunnels", "/tokens", "/private-networks", "/webhook-receivers"];
const LISTS = [...LISTS_FOR_AGENTS, "/domains", "/reserved-subdomains", "/projects", "/events"];
const FOR_AGENTS = [...LISTS_FOR_AGENTS, "/inspector"];
const ALL = [...LISTS, "/inspector", "/inspector/har", "/metrics/breakdown?window=24h"];
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

test.each(LISTS)("GET %s after an unknown row: 400 with rights, 401 without", async (path) => {
  const url = withUnknownPosition(path);
  expect((await owner.get(url)).status).toBe(400);
  const member = await api.logIn(owner.email, owner.password);
  await member.post("/auth/logout");
  expect(await member.get(url)).toMatchObject({ status: 401, body: UNAUTHORIZED });
});

describe.each(ALL)("GET %s", (path) => {
  test("after the end of the session, nothing", async () => {
    const member = await api.logIn(owner.email, owner.password);
    expect((await member.get(path)).status).toBe(200);
    expect((await member.post("/auth/logout")).status).toBe(200);
    expect(await member.get(path)).toMatchObject({ status: 401, body: UNAUTHORIZED });
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
