import { expect, test } from "vitest";
import { findSharedSite } from "../../../self-host/shared-site.ts";

test.each([
  ["tunnels.example", "tunnels.example", "tunnels.example"],
  ["tunnels.example", "api.tunnels.example", "tunnels.example"],
  ["t.company.example", "API.company.example", "company.example"],
  ["tunnels.company.co.uk", "api.company.co.uk", "company.co.uk"],
])("tunnels below %s share the site of the API at %s", (domain, apiHost, site) => {
  expect(findSharedSite(["localhost", apiHost], domain)).toEqual({ apiHost, site });
});

test.each([
  ["localhost", "localhost"],
  ["localhost", "underpass.example"],
  ["dev.localhost", "api.localhost"],
  ["tunnels.example", "underpass.example"],
  ["first.co.uk", "second.co.uk"],
  ["server.internal", "api.server.internal"],
  ["tunnels.example", "192.0.2.1"],
])("tunnels below %s do not share the site of the API at %s", (domain, apiHost) => {
  expect(findSharedSite([apiHost, "127.0.0.1", "[::1]"], domain)).toBeUndefined();
});
