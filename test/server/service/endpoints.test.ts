/** The OpenAPI document has every promised endpoint, with its promised statuses. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi, type TestApi } from "../../harness/server/api.ts";
import { formatRoute, readRoutes, type Route } from "../../harness/server/routes.ts";

const PROMISED = `
GET    /health                                        public 200
GET    /ready                                         public 200 503
POST   /auth/signup                                   public 201 400 429
POST   /auth/verify-email-otp                         public 200 400
POST   /auth/resend-verify-otp                        public 200
POST   /auth/login                                    public 200 401 429
POST   /auth/login/mfa                                public 200 401
POST   /auth/refresh                                  public 200 401
POST   /auth/forgot                                   public 202
POST   /auth/reset                                    public 200 400
POST   /auth/logout                                   bearer 200
GET    /auth/me                                       bearer 200 401
GET    /auth/sessions                                 bearer 200
DELETE /auth/sessions/{id}                            bearer 200 401
POST   /auth/cli/start                                public 200 429
POST   /auth/cli/poll                                 public 200 400 410
POST   /auth/cli/authorize                            bearer 200 401
GET    /auth/oauth/idp_a/start                        public 302 503
GET    /auth/oauth/idp_a/callback                     public 302 503
GET    /auth/oauth/idp_b/start                        public 302 503
GET    /auth/oauth/idp_b/callback                     public 302 400 403 503
POST   /auth/mfa/enroll                               bearer 200 401
POST   /auth/mfa/enroll/verify                        bearer 200 400
POST   /auth/mfa/disable                              bearer 200 401
GET    /tunnels                                       bearer 200
POST   /tunnels                                       bearer 201
DELETE /tunnels/{id}                                  bearer 200 404
PUT    /tunnels/{id}/edge-auth                        bearer 200 400 402 404 503
DELETE /tunnels/{id}/edge-auth                        bearer 200 404
GET    /edge-auth/start                               public 302 400 404 429 503
GET    /edge-auth/callback                            public 302 400 403 404 503
GET    /tokens                                        bearer 200
POST   /tokens                                        bearer 200
DELETE /tokens/{nonce}                                bearer 200 404
GET    /webhook-receivers                             bearer 200 401
POST   /webhook-receivers                             bearer 201 400 403
GET    /webhook-receivers/{id}                        bearer 200 404
DELETE /webhook-receivers/{id}                        bearer 200 403 404
GET    /webhook-receivers/{id}/events                 bearer 200 400 404
POST   /webhook-receivers/{id}/ack                    bearer 200 403 404
POST   /webhook-receivers/{id}/rotate                 bearer 200 403 404
POST   /hooks/{id}                                    public 200 401 404 413 429
GET    /private-networks                              bearer 200 401 403
POST   /private-networks                              bearer 201 400 401 403 409
GET    /private-networks/{id}                         bearer 200 401 403 404
DELETE /private-networks/{id}                         bearer 200 401 403 404
PUT    /private-networks/{id}/server                  bearer 200 400 401 403 404 503
DELETE /private-networks/{id}/server                  bearer 200 401 403 404
GET    /private-networks/{id}/server-config           bearer 200 401 403 404 409
GET    /private-networks/{id}/devices                 bearer 200 401 403 404
POST   /private-networks/{id}/devices                 bearer 201 400 401 403 404 409
DELETE /private-networks/{id}/devices/{device_id}     bearer 200 401 403 404
GET    /private-networks/{id}/devices/{device_id}/config bearer 200 401 403 404 409
POST   /private-networks/{id}/relay-ticket            bearer 200 401 403 404 409 503
GET    /events                                        bearer 200
GET    /me/events                                     bearer 200
GET    /orgs                                          bearer 200
POST   /orgs                                          bearer 201 409
GET    /orgs/{id}                                     bearer 200 404
PATCH  /orgs/{id}                                     bearer 200 403 404
DELETE /orgs/{id}                                     bearer 200 403 404
POST   /orgs/{id}/switch                              bearer 200 404
GET    /orgs/{id}/members                             bearer 200 404
PATCH  /orgs/{id}/members/{user_id}                   bearer 200 403 404 409
DELETE /orgs/{id}/members/{user_id}                   bearer 200 403 404 409
GET    /orgs/{id}/invitations                         bearer 200 404
POST   /orgs/{id}/invitations                         bearer 201 403 404 409
DELETE /orgs/{id}/invitations/{invitation_id}         bearer 200 403 404
POST   /invitations/lookup                            bearer 200 400 403
POST   /invitations/accept                            bearer 200 400 403
`;

interface Promised {
  name: string;
  auth: string;
  statuses: string[];
}
const promised = PROMISED.trim()
  .split("\n")
  .map((line): Promised => {
    const [method, path, auth = "", ...statuses] = line.split(/\s+/);
    return { name: `${method} ${path}`, auth, statuses };
  });

/** The refresh cookie is no header that a caller sets. */
const isPublic = ({ security }: Route) => security.every((scheme) => "refreshCookie" in scheme);

let api: TestApi;
let routes: Map<string, Route>;
beforeAll(async () => {
  api = await startApi();
  routes = new Map((await readRoutes(api)).map((route) => [formatRoute(route), route]));
});
afterAll(() => api.stop());

test.each(promised)("$name is in the document: $auth, $statuses", ({ name, auth, statuses }) => {
  const route = routes.get(name);
  expect(route, `${name} is missing`).toBeDefined();
  expect(isPublic(route!) ? "public" : "bearer").toBe(auth);
  expect(Object.keys(route!.responses)).toEqual(expect.arrayContaining(statuses));
});
