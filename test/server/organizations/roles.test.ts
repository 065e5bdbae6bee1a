/** The lowest role for each route of the API: every route is requested by every role. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { LOWEST_ROLE_BY_PERMISSION } from "../../../workers/identity/permissions.ts";
import { startApi, type Person, type Role, type TestApi } from "../../harness/server/api.ts";
import {
  isGuarded,
  formatRoute,
  readRoutes,
  requestStatus,
  type Route,
} from "../../harness/server/routes.ts";

const ROLES = ["viewer", "member", "admin", "owner"] as const;

/** The lowest role that is not refused. The test fails for a route that is not in this table. */
const LOWEST_ROLE: Record<string, Role> = {
  "GET /auth/me": "viewer",
  "POST /auth/logout": "viewer",
  "GET /auth/sessions": "viewer",
  "DELETE /auth/sessions/{id}": "viewer",
  "POST /auth/mfa/enroll": "viewer",
  "POST /auth/mfa/enroll/verify": "viewer",
  "POST /auth/mfa/disable": "viewer",
  "DELETE /auth/mfa/removal": "viewer",
  "POST /auth/reauthenticate": "viewer",
  "GET /auth/cli/request": "member",
  "POST /auth/cli/authorize": "member",
  "POST /auth/cli/deny": "member",
  "GET /me/events": "viewer",
  "GET /events": "viewer",
  "GET /metrics": "viewer",
  "GET /metrics/timeseries": "viewer",
  "GET /metrics/breakdown": "viewer",
  "GET /metrics/prometheus": "viewer",
  "GET /usage": "viewer",
  "GET /orgs": "viewer",
  "POST /orgs": "viewer",
  "GET /orgs/{id}": "viewer",
  "PATCH /orgs/{id}": "admin",
  "DELETE /orgs/{id}": "owner",
  "PUT /orgs/{id}/budget": "admin",
  "POST /orgs/{id}/switch": "viewer",
  "GET /billing": "owner",
  "POST /billing/checkout-session": "owner",
  "POST /billing/portal": "owner",
  "POST /billing/cancel": "owner",
  "GET /orgs/{id}/members": "viewer",
  "PATCH /orgs/{id}/members/{user_id}": "admin",
  /** For other members: every member may leave. */
  "DELETE /orgs/{id}/members/{user_id}": "admin",
  "GET /orgs/{id}/invitations": "viewer",
  "POST /orgs/{id}/invitations": "admin",
  "DELETE /orgs/{id}/invitations/{invitation_id}": "admin",
  "POST /invitations/lookup": "viewer",
  "POST /invitations/accept": "viewer",
  "GET /tunnels": "viewer",
  "POST /tunnels": "member",
  "DELETE /tunnels/{id}": "member",
  "POST /tunnels/{id}/start": "member",
  "POST /tunnels/{id}/stop": "member",
  "GET /tunnels/{id}/auth": "viewer",
  "PUT /tunnels/{id}/auth": "member",
  "DELETE /tunnels/{id}/auth": "member",
  "GET /tunnels/{id}/edge-auth": "viewer",
  "PUT /tunnels/{id}/edge-auth": "member",
  "DELETE /tunnels/{id}/edge-auth": "member",
  "GET /tunnels/{id}/inspector": "viewer",
  "PUT /tunnels/{id}/inspector": "member",
  "GET /tunnels/{id}/ip-allowlist": "viewer",
  "PUT /tunnels/{id}/ip-allowlist": "member",
  "DELETE /tunnels/{id}/ip-allowlist": "member",
  "GET /tunnels/{id}/policy": "viewer",
  "PUT /tunnels/{id}/policy": "member",
  "DELETE /tunnels/{id}/policy": "member",
  "POST /tunnels/{id}/policy/dry-run": "viewer",
  "POST /tunnels/{id}/visitor-tokens": "member",
  "GET /tunnels/{id}/maintenance": "viewer",
  "PUT /tunnels/{id}/maintenance": "member",
  "PUT /tunnels/{id}/shards": "member",
  "GET /tunnels/{id}/agents": "viewer",
  "DELETE /tunnels/{id}/maintenance": "member",
  "GET /connections": "viewer",
  "DELETE /connections/{agent_id}": "admin",
  "GET /inspector": "viewer",
  "GET /inspector/har": "viewer",
  "GET /inspector/{id}": "viewer",
  "GET /inspector/{id}/har": "viewer",
  "GET /inspector/{id}/curl": "viewer",
  "POST /inspector/{id}/replay": "member",
  "DELETE /inspector": "member",
  /** The token is sent as a WebSocket protocol. Without one every role gets 401. */
  "GET /inspector/ws": "viewer",
  "GET /domains": "viewer",
  "POST /domains": "member",
  "DELETE /domains/{id}": "member",
  "POST /domains/{id}/verify": "member",
  "PUT /domains/{id}/bind": "member",
  "DELETE /domains/{id}/bind": "member",
  "GET /reserved-subdomains": "viewer",
  "POST /reserved-subdomains": "member",
  "DELETE /reserved-subdomains/{id}": "member",
  "GET /private-networks": "viewer",
  "POST /private-networks": "member",
  "GET /private-networks/{id}": "viewer",
  "DELETE /private-networks/{id}": "member",
  "PUT /private-networks/{id}/server": "member",
  "DELETE /private-networks/{id}/server": "member",
  "GET /private-networks/{id}/server-config": "viewer",
  "POST /private-networks/{id}/relay-ticket": "member",
  "GET /private-networks/{id}/devices": "viewer",
  "POST /private-networks/{id}/devices": "member",
  "DELETE /private-networks/{id}/devices/{device_id}": "member",
  "GET /private-networks/{id}/devices/{device_id}/config": "viewer",
  "GET /webhook-receivers": "viewer",
  "POST /webhook-receivers": "member",
  "GET /webhook-receivers/{id}": "viewer",
  "DELETE /webhook-receivers/{id}": "member",
  "POST /webhook-receivers/{id}/rotate": "member",
  "GET /webhook-receivers/{id}/events": "viewer",
  "POST /webhook-receivers/{id}/ack": "member",
  "GET /tokens": "viewer",
  "POST /tokens": "member",
  "POST /tokens/master": "member",
  "DELETE /tokens/{nonce}": "member",
  "POST /tokens/{nonce}/rotate": "member",
  "PUT /tokens/{nonce}/budget": "admin",
  "GET /projects": "viewer",
  "POST /projects": "member",
  "GET /projects/{slug}": "viewer",
  "PATCH /projects/{slug}": "member",
  "DELETE /projects/{slug}": "member",
  "POST /projects/{slug}/tokens": "member",
};

/** These end the caller's session or the organization: each of their requests gets a new one. */
const DESTRUCTIVE = new Set(["POST /auth/logout", "DELETE /orgs/{id}"]);

let api: TestApi;
let routes: Route[];
let people: Record<Role, Person>;

beforeAll(async () => {
  api = await startApi();
  routes = (await readRoutes(api)).filter(isGuarded);
  const owner = await api.owner();
  const colleagues = [];
  for (const role of ROLES) colleagues.push([role, await api.colleague(owner, role)] as const);
  people = Object.fromEntries(colleagues) as typeof people;
});
afterAll(() => api.stop());

/** Sends no body, and ids that do not exist: a role that is allowed to call the route gets another error, or none. */
async function isRefused(route: Route, role: Role): Promise<boolean> {
  const caller = DESTRUCTIVE.has(formatRoute(route))
    ? await api.colleague(await api.owner(), role)
    : people[role];
  const values: Record<string, string> = route.path.startsWith("/orgs/")
    ? { "{id}": caller.orgId }
    : {};
  return (await requestStatus(route, caller, values)) === 403;
}

test("every route is in the table", () => {
  const unknown = routes.map(formatRoute).filter((name) => !(name in LOWEST_ROLE));
  expect(unknown).toEqual([]);
});

test.each(Object.entries(LOWEST_ROLE))("%s requires at least the role %s", async (name, lowest) => {
  const route = routes.find((candidate) => formatRoute(candidate) === name);
  expect(route, `${name} is missing`).toBeDefined();
  const refused = [];
  for (const role of ROLES) if (await isRefused(route!, role)) refused.push(role);
  expect(refused).toEqual(ROLES.slice(0, ROLES.indexOf(lowest)));
  if (refused.length > 0) expect(Object.keys(route!.responses)).toContain("403");
});

test("a refusal says who may do it, and who can change the role", async () => {
  const { member } = people;
  const budget = { monthlyBudgetUsdCents: 1 };
  const refusals = [
    [
      await member.put(`/orgs/${member.orgId}/budget`, budget),
      "Only admins and owners",
      "An owner or admin",
    ],
    [await member.post("/billing/portal"), "Only owners", "An owner"],
  ] as const;
  for (const [reply, allowed, helper] of refusals) {
    const message = expect.stringMatching(
      new RegExp(
        `^${allowed} of the organization can do this .* ${helper} can change your role\\.$`,
      ),
    );
    expect(reply).toMatchObject({ status: 403, body: { error: "forbidden", message } });
  }
});

test("the documentation has every permission with its roles", async () => {
  const text = await readFile(join(ROOT, "docs/api.md"), "utf8");
  const rows = text
    .match(/^\| `\w+:[\w-]+` .*$/gm)!
    .map((row) => row.split("|").map((cell) => cell.trim()));
  const documented = rows.map(([, permission, , ...cells]) => [
    permission,
    ROLES.filter((_, at) => cells[at] === "yes"),
  ]);
  const expected = Object.entries(LOWEST_ROLE_BY_PERMISSION).map(([permission, lowest]) => [
    `\`${permission}\``,
    ROLES.slice(ROLES.indexOf(lowest)),
  ]);
  expect(documented.sort()).toEqual(expected.sort());
});
