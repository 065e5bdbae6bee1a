/** Traffic policies that are tested on the captured requests of a tunnel. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyDryRun } from "../../../protocol/schemas/access/policy-dry-run.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { Person } from "../../harness/server/api.ts";
import {
  basicAuthorization,
  startTunnelOwner,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import {
  startVisitedTunnel,
  waitForCaptures,
  type VisitedTunnel,
} from "../../harness/tunnel/visited-tunnel.ts";

const DENY = { kind: "deny", path_prefix: "/admin" };
const JWT = { kind: "jwt_validation" };
const SET = { kind: "header_set", name: "X-Team", value: "blue" };
const LIMIT = { kind: "rate_limit", requests_per_minute: 1_000 };

let owned: TunnelOwner;
let owner: Person;
let shop: VisitedTunnel;
beforeAll(async () => {
  owned = await startTunnelOwner({ kind: "public" });
  owner = owned.owner;
  shop = await startVisitedTunnel(owned, "dry-run");
});
afterAll(() => owned.stop());

const dryRun = (body: object, { id }: { id: string } = shop, by: Person = owner) =>
  by.post<PolicyDryRun>(`/tunnels/${id}/policy/dry-run`, body);

test("a dry run counts what a policy would have done, lists it, and saves nothing", async () => {
  for (const path of ["/", "/admin", "/shop?a=b", "/%61dmin/users?x=y"]) await shop.visit(path);
  await waitForCaptures(owner, { tunnel_id: shop.id }, 4);
  const { status, body } = await dryRun({ actions: [SET, LIMIT, DENY] });
  expect(status).toBe(200);
  expect(body).toMatchObject({ evaluated: 4, allowed: 2, refused: 2, unknown: 0, changed: 2 });
  expect(body.rules.map(({ kind, matched }) => [kind, matched])).toEqual([
    ["header_set", 2],
    ["rate_limit", 0],
    ["deny", 2],
  ]);
  expect(
    body.examples.map(({ method, path, new_status, rule }) => [method, path, new_status, rule]),
  ).toEqual([
    ["GET", "/%61dmin/users", 403, 2],
    ["GET", "/admin", 403, 2],
  ]);
  const [{ id, timestamp, status: then }] = body.examples as [PolicyDryRun["examples"][number]];
  expect((await owner.get(`/inspector/${id}`)).body).toMatchObject({ id, timestamp, status: then });

  expect((await owner.get(`/tunnels/${shop.id}/policy`)).body).toMatchObject({ policy: null });
  expect((await shop.visit("/admin")).status).toBe(200);
  expect((await dryRun({ actions: [DENY], limit: 2 })).body).toMatchObject({ evaluated: 2 });
});

test("a dry run knows which requests had no token, and what a policy refused", async () => {
  const gated = await startVisitedTunnel(owned, "dry-run-gated");
  await gated.visit("/");
  await gated.visit("/", { authorization: "Bearer a.b.c" });
  await waitForCaptures(owner, { tunnel_id: gated.id }, 2);
  expect((await dryRun({ actions: [JWT] }, gated)).body).toMatchObject({
    refused: 1,
    unknown: 1,
    examples: [{ new_status: 401 }, { outcome: "unknown", reason: "token" }],
  });

  await gated.put("policy", { actions: [DENY] });
  expect((await gated.visit("/admin")).status).toBe(403);
  await gated.put("auth", { username: "ann", password: "correct horse" });
  expect((await gated.visit("/")).status).toBe(401);
  expect((await gated.visit("/", basicAuthorization("ann", "correct horse"))).status).toBe(200);
  await waitForCaptures(owner, { tunnel_id: gated.id }, 5);
  // An earlier version of the settings refused /admin by the policy. The password refused the other request.
  expect((await dryRun({ actions: [] }, gated)).body).toMatchObject({ allowed: 4, unknown: 1 });
  expect((await dryRun({ actions: [JWT] }, gated)).body).toMatchObject({ refused: 0, unknown: 5 });
});

test("replays are not evaluated, and a tunnel without requests has none", async () => {
  const { body: idle } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  expect(await dryRun({ actions: [DENY] }, idle)).toMatchObject({
    status: 200,
    body: { evaluated: 0, since: null, examples: [], rules: [{ matched: 0 }] },
  });
  await shop.put("inspector", { allowReplay: true });
  const { body } = await dryRun({ actions: [DENY] });
  const path = `/inspector/${body.examples[0]!.id}/replay`;
  expect(await owner.post(path, {})).toMatchObject({ status: 200 });
  expect((await dryRun({ actions: [DENY] })).body).toMatchObject({ evaluated: body.evaluated });
});

test.each(["http", "https", "websocket"])(
  "a tunnel to a local server that speaks %s has dry runs, as it has a policy",
  async (protocol) => {
    const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1, protocol });
    expect(await dryRun({ actions: [DENY] }, tunnel)).toMatchObject({ status: 200 });
    const path = `/tunnels/${tunnel.id}/policy`;
    expect(await owner.put(path, { actions: [DENY] })).toMatchObject({ status: 200 });
  },
);

describe("a dry run is refused", () => {
  test.each([
    ["an unknown kind", { actions: [DENY, { kind: "allow" }] }, "actions[1].kind"],
    [
      "a prefix that is not a path",
      { actions: [{ ...DENY, path_prefix: "a" }] },
      "actions[0].path_prefix",
    ],
    [
      "an issuer without TLS",
      { actions: [{ ...JWT, allowed_issuers: ["http://i.example"] }] },
      "actions[0].allowed_issuers[0]",
    ],
    ["a limit of zero", { actions: [], limit: 0 }, "limit"],
    ["too high a limit", { actions: [], limit: 1_001 }, "limit"],
    ["no actions", {}, "actions"],
  ])("with %s, and the response names the field", async (_, body, field) => {
    const path = `/tunnels/${shop.id}/policy/dry-run`;
    const { status, body: error } = await owner.post<ErrorBody>(path, body);
    expect([status, error.error, error.fields?.[0]?.path]).toEqual([400, "bad_policy", field]);
  });

  test("for tunnels of other organizations; viewers may use it", async () => {
    const other = await owned.api.owner();
    expect(await dryRun({ actions: [] }, shop, other)).toMatchObject({ status: 404 });
    const viewer = await owned.api.colleague(owner, "viewer");
    expect(await dryRun({ actions: [] }, shop, viewer)).toMatchObject({ status: 200 });
    const id = crypto.randomUUID();
    expect(await dryRun({ actions: [] }, { id })).toMatchObject({ status: 404 });
  });
});
