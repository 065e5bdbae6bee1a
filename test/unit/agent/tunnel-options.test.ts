import { expect, test } from "vitest";
import { HTTP_TUNNEL_OPTIONS } from "../../../agent/tunnel/http-options.ts";
import { parseOptions, UsageError } from "../../../agent/options.ts";
import {
  TCP_QUERY_OPTIONS,
  toQuery,
  TUNNEL_QUERY_OPTIONS,
} from "../../../agent/tunnel/tunnel-options.ts";
import { LABEL_MESSAGE } from "../../../protocol/names.ts";

test("each tunnel option that is given becomes the query parameter of the same name", async () => {
  const { values } = await parseOptions(
    ["--subdomain", "shop", "--ttl", "60"],
    TUNNEL_QUERY_OPTIONS,
  );
  expect(toQuery(TUNNEL_QUERY_OPTIONS, values)).toEqual({ subdomain: "shop", ttl: "60" });
  const args = ["--remote-port", "20007", "--allow", "203.0.113.7", "--allow", "2001:db8::/32"];
  const { values: tcp } = await parseOptions(args, TCP_QUERY_OPTIONS);
  expect(toQuery(TCP_QUERY_OPTIONS, tcp)).toEqual({
    remote_port: "20007",
    allow: "203.0.113.7/32,2001:db8::/32",
  });
  const { values: withoutList } = await parseOptions(["--allow", "off"], TCP_QUERY_OPTIONS);
  expect(toQuery(TCP_QUERY_OPTIONS, withoutList)).toEqual({ allow: "off" });
  const { values: defaults } = await parseOptions([], TCP_QUERY_OPTIONS);
  expect(toQuery(TCP_QUERY_OPTIONS, defaults)).toEqual({});
});

test("values that are not tunnel options are not sent", () => {
  expect(toQuery(TUNNEL_QUERY_OPTIONS, { project: "web", url: "https://a.test" })).toEqual({
    project: "web",
  });
});

test.each([
  ["--ttl", "soon", "--ttl must be a time such as 90s, 15m, 2h or 1d, not soon"],
  ["--remote-port", "0", "--remote-port must be a number from 1 to 65535, not 0"],
  ["--subdomain", "Api", `--subdomain ${LABEL_MESSAGE}, not Api`],
  ["--project", "a_b", `--project ${LABEL_MESSAGE}, not a_b`],
  ["--name", "-a", `--name ${LABEL_MESSAGE}, not -a`],
  [
    "--url",
    "viaurl",
    "--url must be a whole host such as https://viaurl.example.com, not viaurl; --subdomain needs only a name",
  ],
  ["--allow", "here", "--allow must be an address block such as 203.0.113.0/24, not here"],
])("%s %s is bad usage", async (option, value, message) => {
  const specs = { ...HTTP_TUNNEL_OPTIONS, ...TCP_QUERY_OPTIONS };
  await expect(parseOptions([`${option}=${value}`], specs)).rejects.toThrow(
    new UsageError(message),
  );
});
