/** Every operation of the document is sent as its example, and answered as the document says. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createCaller,
  mintToken,
  startApi,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { createResources, type ResourceFinder } from "../../harness/server/resources.ts";
import { readRoutes, type Route } from "../../harness/server/routes.ts";

/** The error codes of operations whose example names something that only exists after another step. */
const REFUSALS: Record<string, string> = {
  // Codes and tokens are mailed, shown on a screen or signed.
  acceptInvitation: "invalid_token",
  approveDeviceAuthorization: "invalid_code",
  cancelMfaRemoval: "invalid_token",
  cancelOwnMfaRemoval: "not_found",
  completeLogin: "unauthorized",
  completeMfaRemoval: "invalid_token",
  createTunnelRelayTicket: "unauthorized",
  deliverWebhook: "unauthorized",
  denyDeviceAuthorization: "invalid_code",
  disableMfa: "conflict",
  enableMfa: "invalid_code",
  getDeviceAuthorization: "invalid_code",
  logIn: "unauthorized",
  lookUpInvitation: "invalid_token",
  pollDeviceAuthorization: "expired",
  refreshSession: "unauthorized",
  requestMfaRemoval: "unauthorized",
  resetPassword: "invalid_token",
  verifyEmail: "invalid_code",
  setUpServer: "invalid_code",
  // The agent's token has been rotated.
  endConnection: "not_found",
  // No visitor has sent a request.
  exportCapturedRequest: "not_found",
  getCapturedRequest: "not_found",
  getCapturedRequestAsCurl: "not_found",
  replayCapturedRequest: "not_found",
  // The server has neither providers, nor a relay, nor a resolver.
  cancelMockSubscription: "method_not_allowed",
  completeSignInWithIdpA: "provider_not_configured",
  completeSignInWithIdpB: "provider_not_configured",
  completeVisitorSignIn: "provider_not_configured",
  openBillingPortal: "billing_not_configured",
  receiveBillingEvent: "billing_not_configured",
  registerNetworkServer: "unavailable",
  setIdentityGate: "provider_not_configured",
  startCheckout: "billing_not_configured",
  startSignInWithIdpA: "provider_not_configured",
  startSignInWithIdpB: "provider_not_configured",
  verifyDomain: "unavailable",
  // These need a server of the network, or a verified domain.
  bindDomain: "verification_failed",
  checkCertificateHost: "not_found",
  createNetworkRelayTicket: "server_not_registered",
  getNetworkDeviceConfig: "server_not_registered",
  getNetworkServerConfig: "server_not_registered",
};

const METHOD_ORDER = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/** Before the tunnel is deleted. */
const FIRST_DELETED = "deleteCapturedRequests";
/** It ends the token that other examples name, as its deletion does. */
const LIKE_DELETION = "rotateToken";
/** Each of these ends the session, and gets one of its own. */
const LAST = ["endSession", "logOut", "deleteOrganization"];

let api: TestApi;
let owner: Person;
let routes: Route[];
let findResource: ResourceFinder;

beforeAll(async () => {
  api = await startApi({ shared: false });
  owner = await api.owner();
  routes = await readRoutes(api);
  findResource = await createResources(api, owner);
});
afterAll(() => api.stop());

/** WebSockets are left out. Resources are read and changed before they are deleted, and those inside of others are deleted first. */
function sortRoutes(): Route[] {
  const rank = ({ method, path, operationId }: Route) => [
    LAST.indexOf(operationId),
    METHOD_ORDER.indexOf(operationId === LIKE_DELETION ? "DELETE" : method),
    method === "DELETE" && operationId !== FIRST_DELETED ? 1 : 0,
    -path.length,
  ];
  return routes
    .filter(({ responses }) => !("101" in responses))
    .map((route) => ({ route, key: rank(route) }))
    .sort((one, other) => {
      const at = one.key.findIndex((part, index) => part !== other.key[index]);
      return at === -1 ? 0 : one.key[at]! - other.key[at]!;
    })
    .map(({ route }) => route);
}

async function findCaller({ operationId, security }: Route): Promise<Caller> {
  if (security.length === 0) return api.anonymous;
  if (operationId === "getPresentedToken") {
    return createCaller(api.server, {
      authorization: `Bearer ${(await mintToken(owner)).wireBytes}`,
    });
  }
  return LAST.includes(operationId) ? api.logIn(owner.email, owner.password) : owner;
}

async function sendExample(route: Route, by: Caller) {
  const values = route.path.includes("{") ? findResource(route) : {};
  const tunnelId = findResource({ ...route, path: "/tunnels/{id}" })["{id}"]!;
  let path = route.path;
  const query = new URLSearchParams();
  for (const { name, in: place, required, example } of route.parameters ?? []) {
    const value = name === "tunnel_id" ? tunnelId : (values[`{${name}}`] ?? String(example));
    if (place === "path") path = path.replace(`{${name}}`, value);
    else if (required) query.set(name, value);
  }
  const body = route.requestBody?.content["application/json"]?.example;
  return by.send<{ error?: string; message?: string }>(
    route.method,
    query.size > 0 ? `${path}?${query.toString()}` : path,
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
  );
}

test("every example is accepted, or refused only because it names what does not exist", async () => {
  const unexpected: string[] = [];
  for (const route of sortRoutes()) {
    const { status, body } = await sendExample(route, await findCaller(route));
    const outcome = status < 400 ? "accepted" : body.error;
    if (outcome !== (REFUSALS[route.operationId] ?? "accepted")) {
      unexpected.push(`${route.operationId}: ${status} ${outcome} ${body.message}`);
    }
  }
  expect(unexpected).toEqual([]);
});

test("every operation with a JSON body has an example of it", () => {
  for (const { operationId, requestBody } of routes) {
    const media = requestBody?.content["application/json"];
    if (media?.schema) expect([operationId, media.example]).not.toEqual([operationId, undefined]);
  }
});
