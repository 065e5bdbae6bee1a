import { describe, expect, test } from "vitest";
import { authorizeByPolicy, compilePolicy } from "../../../access/policy-actions.ts";
import { PolicyAction } from "../../../protocol/schemas/access/policies.ts";

const NO_EFFECTS = compilePolicy(null);

describe("a traffic policy", () => {
  /** A new kind of action does not compile without an example. */
  const examples: { [Kind in PolicyAction["kind"]]: Extract<PolicyAction, { kind: Kind }> } = {
    header_set: { kind: "header_set", name: "X-Team", value: "blue" },
    deny: { kind: "deny", path_prefix: "/admin" },
    jwt_validation: { kind: "jwt_validation" },
    rate_limit: { kind: "rate_limit", requests_per_minute: 5, per_client_ip: false },
  };

  test.each(Object.values(examples))("has an effect for $kind", (action) => {
    expect(PolicyAction.parse(action)).toEqual(action);
    expect(compilePolicy({ actions: [action] })).not.toEqual(NO_EFFECTS);
  });

  test("that is empty has no effects", () => {
    expect(compilePolicy({ actions: [] })).toEqual(NO_EFFECTS);
  });

  test("that sets a header in two spellings sets the later value", () => {
    const { rewrite, rateLimit } = compilePolicy({
      actions: [
        { kind: "header_set", name: "X-Team", value: "blue" },
        { kind: "header_set", name: "X_Team", value: "red" },
      ],
    });
    expect([...rewrite.set.values()]).toEqual([{ name: "x_team", value: "red" }]);
    expect(rateLimit).toBeNull();
  });

  test.each(["Client-IP", "Fastly-Client-IP", "X-Cluster-Client-IP"])(
    "of an earlier version that sets %s is still valid",
    (name) => {
      expect(PolicyAction.safeParse({ ...examples.header_set, name }).success).toBe(true);
    },
  );

  test("refuses a denied path before it verifies a token", async () => {
    const effects = compilePolicy({ actions: [examples.jwt_validation, examples.deny] });
    const authenticators = { token: () => Promise.resolve("missing" as const) };
    const request = (path: string) => ({
      tunnelId: crypto.randomUUID(),
      path,
      authorization: null,
      address: "192.0.2.1",
      authority: "shop.localhost",
      cookie: null,
      method: "GET",
      origin: null,
      isWebSocket: false,
      getHeaderPaths: () => [],
    });
    const decide = async (path: string) =>
      (await authorizeByPolicy({ ...effects, realm: "shop" }, request(path), authenticators))?.code;
    expect(await decide("/admin/x")).toBe("forbidden");
    expect(await decide("/")).toBe("unauthorized");
  });
});
