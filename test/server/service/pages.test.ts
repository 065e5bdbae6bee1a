/** The pages for browsers: the protections in their headers, which hold before any script runs. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startApi, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api?.stop());

describe.each(["/", "/activate?code=BCDF-GHJK", "/reset", "/two-factor", "/invitation"])(
  "%s",
  (path) => {
    const open = () => api.anonymous.get<string>(path);

    test("loads nothing, cannot be framed, and is not cached", async () => {
      const { status, body, headers } = await open();
      expect(status).toBe(200);
      expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
      const policy = headers.get("content-security-policy")?.split("; ");
      expect(policy).toEqual(
        expect.arrayContaining([
          "default-src 'none'",
          "connect-src 'self'",
          "form-action 'none'",
          "base-uri 'none'",
          "frame-ancestors 'none'",
          "require-trusted-types-for 'script'",
        ]),
      );
      expect(policy?.join()).not.toMatch(/unsafe|https?:|\*/);
      expect(body).not.toMatch(/(src|href)=|@import|url\(/);
    });

    test("allows its one script and its one style, by their hashes", async () => {
      const { body, headers } = await open();
      const policy = headers.get("content-security-policy");
      for (const element of ["script", "style"]) {
        const elements = [
          ...body.matchAll(new RegExp(`<${element}[^>]*>(.*?)</${element}>`, "gs")),
        ];
        expect(elements).toHaveLength(1);
        const hash = createHash("sha256")
          .update(elements[0]?.[1] ?? "")
          .digest("base64");
        expect(policy).toContain(`${element}-src 'sha256-${hash}'`);
      }
    });
  },
);

test("a page supports only GET", async () => {
  const { status, headers } = await api.anonymous.post("/");
  expect(status).toBe(405);
  expect(headers.get("allow")).toBe("GET");
});
