/** Prefixes of `deny` rules: those with dot segments would match nothing that a browser sends. */
import { expect, test } from "vitest";
import { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";

const findMessage = (path_prefix: string) =>
  PolicyAction.safeParse({ kind: "deny", path_prefix }).error?.issues[0]?.message;

test.each([
  ["/x/../secret", "/secret"],
  ["/./secret", "/secret"],
  ["/x/%2e%2E/secret", "/secret"],
  ["/x%2f..%2fsecret", "/secret"],
  ["/x\\..\\secret", "/secret"],
  ["/x/%5c..%5csecret", "/x/secret"],
  ["/x/..;v=1/secret", "/secret"],
  ["/../secret;v=1/", "/secret;v=1/"],
  ["/x/y/..", "/x/"],
  ["/..", "/"],
])("%s is refused: clients send %s", (prefix, resolved) => {
  expect(findMessage(prefix)).toBe(
    `must be written as ${resolved}, without the segments "." and ".."`,
  );
});

test.each(["/", "/.", "/.git", "/admin/.", "/a..b/", "/.../x", "//double", "/caf%c3%a9"])(
  "%s is accepted",
  (prefix) => {
    expect(findMessage(prefix)).toBeUndefined();
  },
);
