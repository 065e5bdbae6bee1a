import { describe, expect, test } from "vitest";
import { parsePolicy, readPolicyFile } from "../../../agent/gates/policy-file.ts";
import { UsageError } from "../../../agent/options.ts";

describe("a policy file", () => {
  test("is YAML or JSON, with values from the environment", () => {
    const yaml = `
actions:
  - kind: deny
    path_prefix: /admin
  - { kind: header_set, name: X-Key, value: "\${KEY}" }
`;
    const policy = parsePolicy(yaml, "policy.yml", { KEY: "secret" });
    expect(policy).toEqual({
      actions: [
        { kind: "deny", path_prefix: "/admin" },
        { kind: "header_set", name: "X-Key", value: "secret" },
      ],
    });
    expect(parsePolicy(JSON.stringify(policy), "policy.json")).toEqual(policy);
  });

  const action = (...lines: string[]) =>
    ["actions:", ...lines.map((line, at) => (at === 0 ? "  - " : "    ") + line)].join("\n");

  test.each<[string, string, string]>([
    [
      "without actions",
      "action: []",
      "policy.yml:1:1: actions is required\n" +
        "policy.yml:1:1: unknown key action; did you mean actions?",
    ],
    ["that is empty", "", "policy.yml:1:1: the policy must be an object"],
    ["that is a list", "- kind: deny", "policy.yml:1:1: the policy must be an object"],
    [
      "with a wrong value",
      action("kind: deny", "path_prefix: admin"),
      'policy.yml:3:18: path_prefix must start with "/"',
    ],
    [
      "with a path that clients send in another spelling",
      action("kind: deny", "path_prefix: /x/../secret"),
      'policy.yml:3:18: path_prefix must be written as /secret, without the segments "." and ".."',
    ],
    [
      "with a value of another type",
      action("kind: rate_limit", "requests_per_minute: many"),
      "policy.yml:3:26: requests_per_minute must be a number",
    ],
    ["with a missing value", action("kind: deny"), "policy.yml:2:5: path_prefix is required"],
    [
      "with an unknown key",
      action("kind: rate_limit", "requests_per_minute: 5", "per_client: true"),
      "policy.yml:4:5: unknown key per_client; did you mean per_client_ip?",
    ],
    [
      "with a mistyped key",
      action("kind: deny", "path_prefx: /admin"),
      "policy.yml:2:5: path_prefix is required\n" +
        "policy.yml:3:5: unknown key path_prefx; did you mean path_prefix?",
    ],
    [
      "without the kind of an action",
      action("type: deny", "path_prefix: /admin"),
      "policy.yml:2:5: kind must be one of: header_set, deny, jwt_validation, rate_limit\n" +
        "policy.yml:2:5: unknown key type",
    ],
    [
      "with two problems",
      action("kind: header_set", "name: Host", "value: [a]"),
      "policy.yml:3:11: name must not be a header that the connection or this service controls\n" +
        "policy.yml:4:12: value must be a string",
    ],
  ])("%s is refused with the place of the problem", (_, text, message) => {
    expect(() => parsePolicy(text, "policy.yml", {})).toThrow(new UsageError(message));
  });

  test.each(["actions: [", "actions:\n\t- kind: deny", "actions: []\nactions: []"])(
    "that is not valid YAML (%j) is refused in our own words",
    (text) => {
      expect(() => parsePolicy(text, "policy.yml", {})).toThrow(/^policy\.yml:\d+:\d+: [a-z]/);
    },
  );

  test("that does not exist is named", () => {
    expect(() => readPolicyFile("/no/such/policy.yml", "--policy-file")).toThrow(
      new UsageError(
        "can't read --policy-file /no/such/policy.yml: it does not exist; check the path",
      ),
    );
  });
});
