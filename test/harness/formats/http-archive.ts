/**
 * HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/): every required field with its type, and no
 * other field without an underscore.
 */
import { z } from "zod";

function strict<Shape extends z.ZodRawShape>(shape: Shape) {
  return z
    .object(shape)
    .catchall(z.unknown())
    .refine(
      (value) => Object.keys(value).every((name) => name in shape || name.startsWith("_")),
      "has a field of its own without an underscore",
    );
}
const comment = z.string().optional();
const size = z.int().min(-1);
const Line = strict({ name: z.string(), value: z.string(), comment });
const Cookie = strict({
  name: z.string(),
  value: z.string(),
  path: z.string().optional(),
  domain: z.string().optional(),
  expires: z.iso.datetime().optional(),
  httpOnly: z.boolean().optional(),
  secure: z.boolean().optional(),
  comment,
});
const Entry = strict({
  pageref: z.string().optional(),
  startedDateTime: z.iso.datetime(),
  time: z.number().min(0),
  request: strict({
    method: z.string(),
    url: z.url(),
    httpVersion: z.string(),
    cookies: z.array(Cookie),
    headers: z.array(Line),
    queryString: z.array(Line),
    postData: strict({
      mimeType: z.string(),
      params: z.array(strict({ name: z.string(), value: z.string().optional() })),
      text: z.string(),
      comment,
    }).optional(),
    headersSize: size,
    bodySize: size,
    comment,
  }),
  response: strict({
    status: z.int(),
    statusText: z.string(),
    httpVersion: z.string(),
    cookies: z.array(Cookie),
    headers: z.array(Line),
    content: strict({
      size: z.int().min(0),
      compression: z.int().optional(),
      mimeType: z.string(),
      text: z.string().optional(),
      encoding: z.string().optional(),
      comment,
    }),
    redirectURL: z.string(),
    headersSize: size,
    bodySize: size,
    comment,
  }),
  cache: strict({ comment }),
  timings: strict({ send: z.number().min(0), wait: z.number().min(0), receive: z.number().min(0) }),
  serverIPAddress: z.string().optional(),
  connection: z.string().optional(),
  comment,
}).refine(({ time, timings: { send, wait, receive } }) => time === send + wait + receive, "time");
export const HttpArchive = strict({
  log: strict({
    version: z.literal("1.2"),
    creator: strict({ name: z.string(), version: z.string(), comment }),
    pages: z.array(z.never()),
    entries: z.array(Entry),
    comment,
  }),
});
